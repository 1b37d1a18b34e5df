package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// runMake runs make here and returns what it prints.
func runMake(t *testing.T, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("there is no make here")
	}
	out, err := exec.Command("make", append([]string{"-C", ".."}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("make %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// written matches the paths that a recipe writes to or removes: what is redirected, and the last
// words of install and rm.
var written = regexp.MustCompile(`(?m)>\s*(\S+)|^(?:install|rm) .*$`)

// TestInstallStays: make install and uninstall with a PREFIX change nothing outside of it.
func TestInstallStays(t *testing.T) {
	found := 0
	for _, line := range written.FindAllStringSubmatch(runMake(t, "-n", "install", "uninstall", "PREFIX=/x"), -1) {
		for _, word := range strings.Fields(strings.TrimLeft(line[0], "> ")) {
			if found++; strings.HasPrefix(word, "/") && !strings.HasPrefix(word, "/x/") {
				t.Errorf("%s is outside of PREFIX: %s", word, line[0])
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d words were found", found)
	}
}

// TestUninstallRule: make uninstall removes the rule for sudo of the program that it removes, and
// not that of another.
func TestUninstallRule(t *testing.T) {
	dir := t.TempDir()
	rule := filepath.Join(dir, "etc/sudoers.d/orrery")
	if err := os.MkdirAll(filepath.Dir(rule), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(rule, []byte("%o ALL = (root) NOPASSWD: /usr/local/bin/orrery-member\n"), 0o440); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		prefix string
		stays  bool
	}{{"/local", true}, {"/x", true}, {"/usr/local", false}} {
		runMake(t, "uninstall", "DESTDIR="+dir, "PREFIX="+c.prefix)
		if _, err := os.Stat(rule); (err == nil) != c.stays {
			t.Errorf("after uninstall of %s: %v", c.prefix, err)
		}
	}
}
