package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/cli/verb"
	"orrery/internal/problem"
)

// TestInitFrom: a host database becomes a site that check finds no mistake in, and nothing that is there is overwritten.
func TestInitFrom(t *testing.T) {
	dir := t.TempDir()
	database := filepath.Join(dir, "hosts.ini")
	mustDo(t, os.WriteFile(database, []byte("[web1]\nctid = 101\nip = 10.7.0.11\nroles = web\n[db1]\nctid = 102\nip = 10.7.0.12\nroles = db\n"), 0o644))
	run := func(args ...string) (int, string) {
		var out bytes.Buffer
		status := Run(args, strings.NewReader(""), &out, &out)
		return status, out.String()
	}
	site := filepath.Join(dir, "site")
	mustDo(t, os.MkdirAll(filepath.Join(site, "roles/db"), 0o755))
	own := filepath.Join(site, "roles/db/role.toml")
	mustDo(t, os.WriteFile(own, []byte("description = \"mine\"\n"), 0o644))
	if status, out := run("init", "--from", database, site); status != 0 || !strings.Contains(out, "1 empty role\n") {
		t.Fatalf("init --from: %d, %s", status, out)
	}
	if text, err := os.ReadFile(filepath.Join(site, "site.toml")); err != nil || !strings.Contains(string(text), "name = \"hosts\"") {
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
		if status, out := run(append([]string{"init", "--name", "No \"name", filepath.Join(dir, "none")}, from...)...); status != 2 || !strings.Contains(out, "--name no-name") {
			t.Errorf("init --name with what is none: %d, %s", status, out)
		}
	}
	named := filepath.Join(dir, "named")
	if status, out := run("init", "--from", database, "--name", "karoo", named); status != 0 || !strings.Contains(out, "of site karoo") {
		t.Errorf("init --from --name: %d, %s", status, out)
	}
	if text, err := os.ReadFile(filepath.Join(named, "site.toml")); err != nil || !strings.Contains(string(text), "name = \"karoo\"") {
		t.Errorf("the site is not called as --name says: %s, %v", text, err)
	}
	if status, out := run("-C", site, "check"); status != 0 || !strings.Contains(out, "2 nodes, 2 roles") {
		t.Errorf("check: %d, %s", status, out)
	}
	if text, err := os.ReadFile(own); err != nil || !strings.Contains(string(text), "mine") {
		t.Errorf("a role that was there is %q: %v", text, err)
	}
	if status, out := run("init", "--from", database, site); status != int(problem.Usage) || !strings.Contains(out, "there is already a site") {
		t.Errorf("init --from once more: %d, %s", status, out)
	}
	if status, _ := run("init", "--from", filepath.Join(dir, "none.ini"), filepath.Join(dir, "other")); status != int(problem.Usage) {
		t.Errorf("init --from a file that is not there: %d", status)
	}
}

// TestImportStatus: whoever reads only the exit status knows whether all of a database is in the site file.
func TestImportStatus(t *testing.T) {
	for text, want := range map[string]int{
		"[a]\nctid = 700101\nip = 10.0.0.1\nroles = web\n":                0, // a role to write is no loss
		"[a]\nctid = 700101\n[b]\nctid = 701101\n":                        int(problem.Left),
		"[a]\nserial = CZ3340ABCD\n":                                      int(problem.Left),
		"[a]\nos/template = ubuntu-10.04\n":                               int(problem.Left),
		"[a]\nhost_server = somewhere.example.org\n":                      0,
		"[a]\nip = 10.0.0.1\n[b]\nip = 10.0.0.1\n":                        int(problem.Left),
		"[a]\nproduction = yes\nctid = 1\n[b]\nproduction = no\nctid=2\n": int(problem.Left),
	} {
		var out, errs bytes.Buffer
		call := &verb.Call{In: strings.NewReader(text), Output: verb.Output{Out: &out, Err: &errs}}
		err := importVerb(call).RunE(nil, []string{"-"})
		if problem.Exit(err) != want || !strings.Contains(out.String(), "[node.a]") {
			t.Errorf("%q: %v\n%s%s", text, err, errs.String(), out.String())
		}
		if lost := strings.Count(errs.String(), "orrery: not recognised: "); (lost > 0) != (want != 0) || want != 0 && !strings.Contains(err.Error(), "not recognised") {
			t.Errorf("%q: %d lost: %s, %v", text, lost, errs.String(), err)
		}
	}
}
