package sitefile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/problem"
)

// TestLock: what is written to releases.lock can be read, each release has its own line, and the
// file is written only if something has changed.
func TestLock(t *testing.T) {
	dir := siteDir(t, map[string]string{"site.toml": "site.name = \"x\"\n"})
	must(t, os.Chmod(filepath.Join(dir, Name), 0o640))
	one, two := "sha256:"+strings.Repeat("1", 64), "sha256:"+strings.Repeat("2", 64)
	l, err := ReadLock(dir)
	must(t, err)
	l.RemoveTwin("dev1")
	must(t, l.Write())
	if _, err := os.Lstat(l.Path()); err == nil {
		t.Error("a file without releases was written")
	}
	l.Set("", 702, two)
	l.Set("", 701, one)
	l.Set("dev1", 701, two)
	must(t, l.Write())
	text, err := os.ReadFile(l.Path())
	must(t, err)
	if want := lockHead + "version = 1\n\n[release]\n701 = \"" + one + "\"\n702 = \"" + two +
		"\"\n\n[twin.dev1.release]\n701 = \"" + two + "\"\n"; string(text) != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	before, err := os.Stat(l.Path())
	must(t, err)
	if before.Mode().Perm() != 0o640 {
		t.Errorf("its mode is %v", before.Mode())
	}
	again, err := ReadLock(dir)
	must(t, err)
	if again.Digest("", 701) != one || again.Digest("", 702) != two || again.Digest("dev1", 701) != two ||
		again.Digest("dev2", 701) != "" || again.Digest("", 703) != "" {
		t.Errorf("read was %+v", again)
	}
	must(t, again.Write())
	after, err := os.Stat(l.Path())
	must(t, err)
	if !os.SameFile(before, after) {
		t.Error("it was written though nothing had changed")
	}
	again.Remove("", 701, 999)
	again.RemoveTwin("dev1")
	must(t, again.Write())
	l.Set("", 703, one)
	if err := l.Write(); !problem.Is(err, problem.Unable) ||
		!strings.Contains(err.Error(), "another command changed it") {
		t.Errorf("the change of another: %v", err)
	}
	if again, err = ReadLock(dir); err != nil ||
		again.Digest("", 701)+again.Digest("dev1", 701)+again.Digest("", 703) != "" || again.Digest("", 702) != two {
		t.Errorf("left is %+v (%v)", again, err)
	}
}

// TestLockMistakes: an invalid file is rejected, and so is a write through a link.
//
// Promise (Other hosts): `releases.lock` is never written through a link, and a release is staged
// only where it can be written. With control.TestLockUnwritable.
func TestLockMistakes(t *testing.T) {
	good := "sha256:" + strings.Repeat("0", 64)
	for text, says := range map[string]string{
		"version = 1\n<<<<<<< HEAD\n": "line 2",
		"version = 2\n":               "has version 2",
		"":                            "has version 0",
		"version = 1\nother = 1\n":    "line 2",
		"version = 1\n[release]\n0701 = \"" + good + "\"\n":          "not the number of a release",
		"version = 1\n[release]\n-1 = \"" + good + "\"\n":            "not the number of a release",
		"version = 1\n[release]\n701 = \"sha256:00\"\n":              "not a digest",
		"version = 1\n[twin.\"../x\".release]\n1 = \"" + good + "\"": "is not valid",
		"#" + strings.Repeat(" ", maxLockBytes):                      "larger than allowed",
	} {
		_, err := ReadLock(siteDir(t, map[string]string{"site.toml": "site.name = \"x\"\n", LockName: text}))
		if !problem.Is(err, problem.Mistake) || !strings.Contains(err.Error(), says) ||
			!strings.Contains(err.Error(), "version control") {
			t.Errorf("%.60q: %v", text, err)
		}
	}
	dir := siteDir(t, map[string]string{"site.toml": "site.name = \"x\"\n", "elsewhere": "version = 1\n"})
	must(t, os.Symlink("elsewhere", filepath.Join(dir, LockName)))
	l, err := ReadLock(dir)
	must(t, err)
	l.Set("", 701, good)
	if err := l.Write(); !problem.Is(err, problem.Unable) || !strings.Contains(err.Error(), "it is a symbolic link") {
		t.Errorf("through a link: %v", err)
	}
	if os.Geteuid() != 0 {
		must(t, os.Remove(filepath.Join(dir, LockName)))
		must(t, os.Chmod(dir, 0o500))
		if l, err = ReadLock(dir); err == nil {
			l.Set("", 701, good)
			err = l.Write()
		}
		if !problem.Is(err, problem.Unable) || !strings.Contains(err.Error(), "you can write to") {
			t.Errorf("where nothing may be written: %v", err)
		}
	}
}
