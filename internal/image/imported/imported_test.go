package imported

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/internal/treesync"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestDigest: a file is identified by its content, wherever it is, and is read once.
func TestDigest(t *testing.T) {
	settle(t, time.Hour)
	m, file, other := DigestCache(t.TempDir()), filepath.Join(t.TempDir(), "a.tar"), filepath.Join(t.TempDir(), "b.tar")
	must(t, os.WriteFile(file, []byte("one"), 0o600))
	must(t, os.WriteFile(other, []byte("one"), 0o600))
	one, err := m.Digest(t.Context(), file)
	must(t, err)
	if two, err := m.Digest(t.Context(), other); err != nil || one != two || one != DigestOf([]byte("one")) {
		t.Errorf("%s and %s: %v", one, two, err)
	}
	if kept, _ := os.ReadDir(string(m)); len(kept) > 0 {
		t.Error("the digest is kept of a file that was written to a moment ago")
	}
	must(t, os.WriteFile(file, []byte("two"), 0o600))
	if two, err := m.Digest(t.Context(), file); err != nil || two != DigestOf([]byte("two")) {
		t.Errorf("changed: %s, %v", two, err)
	}
	if _, err := m.Digest(t.Context(), file+"x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := m.Digest(ended, file); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// settle sets how long a file must have been unchanged.
func settle(t *testing.T, d time.Duration) {
	old := settleTime
	settleTime = d
	t.Cleanup(func() { settleTime = old })
}

// TestRemembered: the digest of a file that does not change any more is cached. A cached digest of
// another state, or a damaged one, is not used.
func TestRemembered(t *testing.T) {
	settle(t, -time.Hour)
	m, target := DigestCache(t.TempDir()), filepath.Join(t.TempDir(), "a.tar")
	must(t, os.WriteFile(target, []byte("one"), 0o600))
	digest, err := m.Digest(t.Context(), target)
	must(t, err)
	kept, err := filepath.Glob(string(m) + "/*.json")
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept is %v, %v", kept, err)
	}
	text, err := os.ReadFile(kept[0])
	must(t, err)
	forged := strings.Repeat("0", 64)
	must(t, os.WriteFile(kept[0], bytes.Replace(text, []byte(digest), []byte(forged), 1), 0o600))
	if again, err := m.Digest(t.Context(), target); err != nil || again != forged {
		t.Errorf("it was read again: %s, %v", again, err)
	}
	for _, damaged := range []string{"", "{}", string(bytes.Replace(text, []byte(digest), []byte("../x"), 1)),
		string(bytes.Replace(text, []byte(`"state": "`), []byte(`"state": "0`), 1))} {
		must(t, os.WriteFile(kept[0], []byte(damaged), 0o600))
		if again, err := m.Digest(t.Context(), target); err != nil || again != digest {
			t.Errorf("%q: %s, %v", damaged, again, err)
		}
	}
}

// TestDirectory: a directory is identified by the archive made from it, whenever its files were
// written and whatever other files it has.
func TestDirectory(t *testing.T) {
	made := func(extra string) string {
		dir := t.TempDir()
		must(t, os.MkdirAll(dir+"/blobs/sha256", 0o755))
		must(t, os.WriteFile(dir+"/index.json", []byte("{}"), 0o644))
		must(t, os.WriteFile(dir+"/blobs/sha256/00", []byte("blob"), 0o600))
		must(t, os.Symlink("/etc/passwd", dir+"/blobs/sha256/01"))
		must(t, os.WriteFile(dir+"/"+extra, []byte("x"), 0o644))
		return dir
	}
	one, other := made("notes"), made("more")
	a, err := DigestCache("").Digest(t.Context(), one)
	must(t, err)
	b, err := DigestCache("").Digest(t.Context(), other)
	must(t, err)
	in, err := Open(t.Context(), one)
	must(t, err)
	text, err := io.ReadAll(in)
	must(t, err)
	if a != b || a != DigestOf(text) || bytes.Contains(text, []byte("notes")) || bytes.Contains(text, []byte("root:")) {
		t.Errorf("%s and %s; what is sent has %s", a, b, DigestOf(text))
	}
	must(t, os.WriteFile(other+"/blobs/sha256/00", []byte("BLOB"), 0o600))
	if b, err = (DigestCache("").Digest(t.Context(), other)); err != nil || a == b {
		t.Errorf("changed: %s, %v", b, err)
	}
}

// TestTransfer: a file, and a directory in the OCI layout, arrive with the same digest, without the
// files beside them.
func TestTransfer(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(dir+"/oci/blobs/sha256", 0o755))
	must(t, os.WriteFile(dir+"/oci/index.json", []byte("{}"), 0o644))
	must(t, os.WriteFile(dir+"/oci/blobs/sha256/00", []byte("blob"), 0o600))
	must(t, os.WriteFile(dir+"/oci/notes", []byte("x"), 0o600))
	must(t, os.Symlink("/etc/passwd", dir+"/oci/blobs/sha256/01"))
	must(t, os.WriteFile(dir+"/root.tar", append(make([]byte, 1<<20), "end"...), 0o644))
	must(t, os.Symlink("root.tar", dir+"/link.tar"))
	for _, name := range []string{"oci", "root.tar", "link.tar"} {
		want, err := DigestCache("").Digest(t.Context(), dir+"/"+name)
		must(t, err)
		to := treesync.Receiver{Dir: filepath.Join(t.TempDir(), "to")}
		var path, digest string
		must(t, treesync.Pipe(t.Context(), func(rw io.ReadWriter) error { return Send(t.Context(), dir+"/"+name, rw) },
			func(rw io.ReadWriter) (err error) {
				path, digest, err = Receive(t.Context(), to, "x", rw)
				return err
			}))
		if stored, err := DigestCache("").Digest(t.Context(), path); err != nil || digest != want || stored != want {
			t.Errorf("%s: %s has come as %s, and is %s: %v", name, want, digest, stored, err)
		}
		files := 0
		must(t, filepath.WalkDir(to.Dir+"/trees", func(_ string, e os.DirEntry, err error) error {
			if !e.IsDir() {
				files++
			}
			return err
		}))
		if want := map[bool]int{true: 2, false: 1}[name == "oci"]; files != want {
			t.Errorf("%s: %d files have come", name, files)
		}
	}
}
