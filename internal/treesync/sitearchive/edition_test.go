package sitearchive

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/internal/tree"
	"orrery/internal/treesync"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestTravel: an edition is the same after the transfer, and another edition has another digest.
func TestTravel(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	must(t, os.MkdirAll(filepath.Join(from, "site/roles/web"), 0o700))
	must(t, os.MkdirAll(filepath.Join(from, "volumes"), 0o700))
	for name, text := range map[string]string{"release.json": `{"number":700}`, "site/site.toml": "x",
		"site/roles/web/role.toml": "y", "site/roles-old": "z", "volumes/data": "large"} {
		must(t, os.WriteFile(filepath.Join(from, name), []byte(text), 0o600))
	}
	before, err := Digest(from)
	must(t, err)
	came, err := carry(t, from, to)
	must(t, err)
	after, err := Digest(to)
	must(t, err)
	if before != came || came != after || len(after) != len("sha256:")+64 {
		t.Errorf("the digests are %s, %s and %s", before, came, after)
	}
	text, err := os.ReadFile(filepath.Join(to, "release.json"))
	if err != nil || string(text) != `{"number":700}` {
		t.Errorf("the record is %s: %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(to, "volumes")); err == nil {
		t.Error("volumes have come, too")
	}
	record := func(text string) string {
		must(t, os.WriteFile(filepath.Join(to, "release.json"), []byte(text), 0o600))
		digest, err := Digest(to)
		must(t, err)
		return digest
	}
	if again := record(`{"number":700,"who":"somebody else"}`); again != after {
		t.Error("who staged it counts")
	}
	if other := record(`{"images":{"debian":"sha256:00"}}`); other == after ||
		other == record(`{"images":{"debian":"sha256:01"}}`) {
		t.Error("what images are made from does not count")
	}
	must(t, os.WriteFile(filepath.Join(to, "site/site.toml"), []byte("X"), 0o600))
	if after, err = Digest(to); err != nil || after == before {
		t.Errorf("another one has the digest %s: %v", after, err)
	}
}

// carry sends the edition in one directory to another.
func carry(t *testing.T, from, to string) (digest string, err error) {
	err = treesync.Pipe(t.Context(), func(rw io.ReadWriter) error { return Send(t.Context(), from, rw) },
		func(rw io.ReadWriter) (err error) {
			digest, err = Receive(t.Context(), rw, to)
			return err
		})
	return digest, err
}

// TestHostileEdition: whatever a host sends in place of an edition, files are only written where
// they should be, and only with their content.
func TestHostileEdition(t *testing.T) {
	for what, make := range map[string]func(in string) error{
		"a link":           func(in string) error { return os.Symlink("/etc", in+"/site/link") },
		"a link to a file": func(in string) error { return os.Symlink("/etc/passwd", in+"/site/site.toml") },
		"a pipe":           func(in string) error { return unix.Mkfifo(in+"/site/pipe", 0o600) },
		"a large file":     func(in string) error { return os.Truncate(in+"/site/other", MaxBytes+1) },
		"no copy":          func(in string) error { return os.RemoveAll(in + "/site") },
		"a deep directory": func(in string) error { return os.MkdirAll(in+"/site/"+strings.Repeat("a/", 50)+"b", 0o700) },
		"a record that is a directory": func(in string) error {
			return errors.Join(os.Remove(in+"/release.json"), os.MkdirAll(in+"/release.json/x", 0o700))
		},
	} {
		from, dir := t.TempDir(), t.TempDir()
		top := filepath.Join(dir, "top")
		must(t, errors.Join(os.Mkdir(top, 0o700), os.Mkdir(from+"/site", 0o700),
			os.WriteFile(from+"/site/other", []byte("x"), 0o600), os.WriteFile(from+"/release.json", []byte("{}"), 0o600)))
		must(t, make(from))
		if digest, err := carry(t, from, top); err == nil {
			t.Errorf("%s: it is taken as %s", what, digest)
		}
		beside, err := os.ReadDir(dir)
		if err != nil || len(beside) != 1 {
			t.Errorf("%s: it has come to %v (%v)", what, beside, err)
		}
		if tree.Exists(filepath.Join(top, ".arrival")) {
			t.Errorf("%s: what has come is left", what)
		}
	}
	from, to := t.TempDir(), t.TempDir()
	must(t, errors.Join(os.Mkdir(from+"/site", 0o700), os.WriteFile(from+"/site/run", []byte("x"), 0o600),
		os.Chmod(from+"/site/run", 0o4755)))
	_, err := carry(t, from, to)
	must(t, err)
	if info, err := os.Stat(to + "/site/run"); err != nil || info.Mode() != 0o600 {
		t.Errorf("a program has come as %v: %v", info.Mode(), err)
	}
	silent := func(io.ReadWriter) error { return nil }
	if err := treesync.Pipe(t.Context(), silent, func(rw io.ReadWriter) error {
		_, err := Receive(t.Context(), rw, t.TempDir())
		return err
	}); err == nil {
		t.Error("nothing came, and is taken")
	}
}
