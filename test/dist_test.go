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

// TestDist: a tagged commit makes a Debian package that installs and says its version, and the same bytes from another directory at another time.
func TestDist(t *testing.T) {
	need.Integration(t)
	t.Parallel()
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("no package is made for " + runtime.GOARCH)
	}
	in := func(dir string, command ...string) string {
		t.Helper()
		c := exec.Command(command[0], command[1:]...)
		c.Dir = dir
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
	var sums []string
	var made string
	for range 2 {
		clone := filepath.Join(t.TempDir(), "orrery")
		in(top, "git", "-c", "safe.directory=*", "clone", "-q", ".", clone)
		in(clone, "git", "tag", "v0.1.0")
		in(clone, "make", "dist")
		made = filepath.Join(clone, "build/dist")
		text, err := os.ReadFile(filepath.Join(made, "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, string(text))
	}
	if sums[0] != sums[1] {
		t.Errorf("the same commit gives\n%sand\n%s", sums[0], sums[1])
	}
	for _, file := range []string{"orrery_0.1.0_amd64.deb", "orrery_0.1.0_arm64.deb", "orrery-0.1.0-linux-amd64.tar.gz", "orrery-0.1.0-linux-arm64.tar.gz", "orrery_0.1.0_amd64.cdx.json", "orrery_0.1.0_arm64.cdx.json"} {
		if !strings.Contains(sums[0], "  "+file+"\n") {
			t.Errorf("there is no %s", file)
		}
	}
	deb := filepath.Join(made, "orrery_0.1.0_"+runtime.GOARCH+".deb")
	scratch := t.TempDir()
	in(made, "mkdir", "-p", scratch+"/var/lib/dpkg/info", scratch+"/var/lib/dpkg/updates")
	in(made, "touch", scratch+"/var/lib/dpkg/status")
	dpkg := []string{"dpkg", "--root=" + scratch, "--log=/dev/null", "--force-depends", "--force-script-chrootless"}
	in(made, append(dpkg, "--install", deb)...)
	if out := in(made, scratch+"/usr/bin/orrery", "version"); !strings.HasPrefix(out, "orrery v0.1.0 ") {
		t.Errorf("orrery version says %s", out)
	}
	for _, file := range []string{"usr/lib/systemd/system/orrery.service", "usr/share/man/man1/orrery-up.1.gz", "usr/share/bash-completion/completions/orrery", "usr/lib/orrery/orrery-micro", "usr/share/doc/orrery/changelog.gz"} {
		if _, err := os.Stat(filepath.Join(scratch, file)); err != nil {
			t.Error(err)
		}
	}
	if unit, _ := os.ReadFile(filepath.Join(scratch, "usr/lib/systemd/system/orrery.service")); !strings.Contains(string(unit), "ExecStart=/usr/bin/orrery resume") {
		t.Errorf("the unit is\n%s", unit)
	}
	in(made, append(dpkg, "--purge", "orrery")...)
	if left := in(made, "find", scratch, "-name", "*orrery*"); left != "" {
		t.Errorf("dpkg --purge left\n%s", left)
	}
}
