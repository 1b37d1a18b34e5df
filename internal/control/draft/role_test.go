package draft

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"orrery/internal/problem"
	"orrery/internal/site/sitefile"
)

// TestWriteRole: a new role has no mistakes, and neither has what its comments propose. It replaces
// nothing.
func TestWriteRole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "site")
	if _, err := WriteRole(dir, "web"); problem.ExitCode(err) != int(problem.Usage) ||
		!strings.Contains(err.Error(), "orrery init") {
		t.Errorf("without a site: %v", err)
	}
	if _, err := WriteExample(dir, ""); err != nil {
		t.Fatal(err)
	}
	path, err := WriteRole(dir, "web")
	if err != nil || path != filepath.Join(dir, "roles/web/role.toml") {
		t.Fatal(path, err)
	}
	if _, err := sitefile.Load(dir); err != nil {
		t.Error(err)
	}
	for name, word := range map[string]string{
		"web": "exists already", "Web": "not valid", "../web": "not valid", "": "not valid",
	} {
		if _, err := WriteRole(dir, name); problem.ExitCode(err) != int(problem.Usage) ||
			!strings.Contains(err.Error(), word) {
			t.Errorf("%q: %v", name, err)
		}
	}

	// Comments with a key, a table, or a line of a text of several lines.
	proposed := regexp.MustCompile(`(?m)^# ([a-z]+ +=|\[\[|install|""")`).ReplaceAllString(read(t, path), "$1")
	tables := strings.Index(proposed, "[[file]]")
	services := regexp.MustCompile(`(?m)^services.*$`).FindString(proposed)
	proposed = proposed[:tables] + services + "\n" + strings.Replace(proposed[tables:], services, "", 1)
	if !strings.Contains(proposed, "\n[[health]]\ntcp") {
		t.Fatalf("no proposal is in\n%s", proposed)
	}
	if err := os.WriteFile(path, []byte(proposed), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "roles/web/web.conf.tmpl"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sitefile.Load(dir); err != nil {
		t.Errorf("%v\n%s", err, proposed)
	}
}
