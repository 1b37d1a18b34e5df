package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/problem"
)

// TestInitFrom: a host database becomes a site without mistakes, and no existing file is
// overwritten.
func TestInitFrom(t *testing.T) {
	dir := t.TempDir()
	database := filepath.Join(dir, "hosts.ini")
	mustDo(t, os.WriteFile(database,
		[]byte("[web1]\nctid = 101\nip = 10.7.0.11\nroles = web\n[db1]\nctid = 102\nip = 10.7.0.12\nroles = db\n"), 0o644))
	run := func(args ...string) (int, string) {
		var out bytes.Buffer
		status := Run(args, nil, strings.NewReader(""), &out, &out)
		return status, out.String()
	}
	site := filepath.Join(dir, "site")
	mustDo(t, os.MkdirAll(filepath.Join(site, "roles/db"), 0o755))
	own := filepath.Join(site, "roles/db/role.toml")
	mustDo(t, os.WriteFile(own, []byte("description = \"mine\"\n"), 0o644))
	if status, out := run("init", "--from", database, site); status != 0 || !strings.Contains(out, "1 empty role\n") {
		t.Fatalf("init --from: %d, %s", status, out)
	}
	if text, err := os.ReadFile(filepath.Join(site, "site.toml")); err != nil ||
		!strings.Contains(string(text), "name = \"hosts\"") {
		t.Errorf("the site is not called as its database: %s, %v", text, err)
	}
	small := filepath.Join(dir, "small")
	if status, out := run("init", "--name", "lab", small); status != 0 {
		t.Errorf("init --name: %d, %s", status, out)
	}
	if text, err := os.ReadFile(filepath.Join(small, "site.toml")); err != nil || !strings.Contains(string(text), "lab") {
		t.Errorf("a small site is not called as --name says: %s, %v", text, err)
	}
	for _, from := range [][]string{nil, {"--from", database}} {
		if status, out := run(append([]string{"init", "--name", "No \"name", filepath.Join(dir, "none")},
			from...)...); status != 2 || !strings.Contains(out, "--name no-name") {
			t.Errorf("init --name with what is none: %d, %s", status, out)
		}
	}
	named := filepath.Join(dir, "named")
	if status, out := run("init", "--from", database, "--name", "karoo", named); status != 0 ||
		!strings.Contains(out, "for site karoo") {
		t.Errorf("init --from --name: %d, %s", status, out)
	}
	if text, err := os.ReadFile(filepath.Join(named, "site.toml")); err != nil ||
		!strings.Contains(string(text), "name = \"karoo\"") {
		t.Errorf("the site is not called as --name says: %s, %v", text, err)
	}
	if status, out := run("-C", site, "check"); status != 0 || !strings.Contains(out, "2 nodes, 2 roles") {
		t.Errorf("check: %d, %s", status, out)
	}
	if text, err := os.ReadFile(own); err != nil || !strings.Contains(string(text), "mine") {
		t.Errorf("a role that was there is %q: %v", text, err)
	}
	if status, out := run("init", "--from", database, site); status != int(problem.Usage) ||
		!strings.Contains(out, "a site already exists") {
		t.Errorf("init --from once more: %d, %s", status, out)
	}
	if status, _ := run("init", "--from", filepath.Join(dir, "none.ini"),
		filepath.Join(dir, "other")); status != int(problem.Usage) {
		t.Errorf("init --from a file that is not there: %d", status)
	}
}
