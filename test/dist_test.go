package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"orrery/test/need"
)

// TestDist: a tagged commit makes a Debian package that installs and reports its version. The
// package is identical when built in another directory at another time.
func TestDist(t *testing.T) {
	need.Integration(t)
	t.Parallel()
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("no package is made for " + runtime.GOARCH)
	}
	in := func(dir string, command ...string) string {
		t.Helper()
		c := exec.Command(command[0], command[1:]...)
		c.Dir, c.Env = dir, append(os.Environ(), "ORRERY_DIST_LEVEL=1")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
		}
		return string(out)
	}
	top, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("git", "-C", top, "rev-parse", "HEAD").Run(); err != nil {
		t.Skip("this is no clone of the repository")
	}
	made := map[string]string{} // digests by file
	dir, source := "", top
	for _, again := range []bool{false, true} {
		clone := filepath.Join(t.TempDir(), "orrery")
		in(top, "git", "-c", "safe.directory=*", "clone", "-q", source, clone)
		source = clone // commits of developers during the test do not matter
		in(clone, "git", "tag", "--force", "v0.1.0")
		dir = filepath.Join(clone, "build/dist")
		// make dist also makes the packages of the other architecture, which needs a compiler for
		// it.
		in(clone, "packaging/dist", runtime.GOARCH)
		sums, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(sums)) {
			digest, file, _ := strings.Cut(strings.TrimSpace(line), "  ")
			if earlier, ok := made[file]; ok && earlier != digest || again != ok {
				t.Errorf("the same commit does not give the same %s", file)
			}
			made[file] = digest
		}
	}
	for _, file := range []string{"orrery_0.1.0_" + runtime.GOARCH + ".deb",
		"orrery-0.1.0-linux-" + runtime.GOARCH + ".tar.gz", "orrery_0.1.0_" + runtime.GOARCH + ".cdx.json"} {
		if made[file] == "" {
			t.Errorf("there is no %s", file)
		}
	}
	deb := filepath.Join(dir, "orrery_0.1.0_"+runtime.GOARCH+".deb")
	scratch := t.TempDir()
	in(dir, "mkdir", "-p", scratch+"/var/lib/dpkg/info", scratch+"/var/lib/dpkg/updates")
	in(dir, "touch", scratch+"/var/lib/dpkg/status")
	dpkg := []string{"dpkg", "--root=" + scratch, "--log=/dev/null", "--force-depends", "--force-script-chrootless"}
	in(dir, append(dpkg, "--install", deb)...)
	if out := in(dir, scratch+"/usr/bin/orrery", "version"); !strings.HasPrefix(out, "orrery 0.1.0 ") {
		t.Errorf("orrery version says %s", out)
	}
	for _, file := range []string{"usr/lib/systemd/system/orrery.service", "usr/share/man/man1/orrery-up.1.gz",
		"usr/share/bash-completion/completions/orrery", "usr/lib/orrery/orrery-micro", "usr/share/doc/orrery/changelog.gz",
		"usr/share/man/man1/orrery-member.1.gz", "usr/share/man/man5/orrery-site.5.gz",
		"usr/share/doc/orrery/docs/howto/backup.md", "usr/lib/orrery/orrery-lab",
		"usr/share/man/man1/orrery-lab-run.1.gz"} {
		if _, err := os.Stat(filepath.Join(scratch, file)); err != nil {
			t.Error(err)
		}
	}
	if unit, _ := os.ReadFile(filepath.Join(scratch,
		"usr/lib/systemd/system/orrery.service")); !strings.Contains(string(unit), "ExecStart=/usr/bin/orrery resume") {
		t.Errorf("the unit is\n%s", unit)
	}
	if out := in(dir, "lintian", "--allow-root", "--fail-on", "none", "--tag-display-limit", "0", deb); out != "" {
		t.Errorf("lintian says\n%s", out)
	}
	in(dir, append(dpkg, "--purge", "orrery")...)
	if left := in(dir, "find", scratch, "-name", "*orrery*"); left != "" {
		t.Errorf("dpkg --purge left\n%s", left)
	}
}
