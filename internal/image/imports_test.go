package image

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/image/imported"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/treesync"
)

// TestReceived: an image is built from a received file. The layer is the same as where the file
// came from, and the file is removed.
func TestReceived(t *testing.T) {
	for name, content := range map[string][]byte{"root.tar": tarred(t, small...),
		"root.tar.gz": compress(t, "gz", tarred(t, small...))} {
		file := writeFile(t, name, content)
		img := site.Image{Name: "x", Import: file, Stamp: site.ContentStamp(imported.DigestOf(content))}
		here, remote := Open(t.TempDir()), Open(t.TempDir())
		at := spec.Base(site.Mirror{}, img)
		img.Import = name
		away := spec.Base(site.Mirror{}, img)
		if at.Digest != away.Digest {
			t.Fatalf("%s: another place makes another layer", name)
		}
		err := remote.BuildBase(t.Context(), away, site.Mirror{}, sayTo(t))
		if problem.ExitCode(err) != int(problem.Failed) || !strings.Contains(err.Error(), "has not received the file") {
			t.Errorf("%s: without the file: %v", name, err)
		}
		must(t, remote.receiveFile(t, img.ContentDigest(), file))
		for s, l := range map[*Store]*spec.Layer{here: at, remote: away} {
			if err := s.BuildBase(t.Context(), l, site.Mirror{}, sayTo(t)); err != nil {
				t.Fatal(err)
			}
			checkSmall(t, s.Tree(l.Digest))
		}
		one, err := here.ContentInfo(at.Digest)
		if err != nil {
			t.Fatal(err)
		}
		if two, err := remote.ContentInfo(at.Digest); err != nil || one != two {
			t.Errorf("%s: the layers are %+v and %+v: %v", name, one, two, err)
		}
		remote.wantReceived(t)
	}
}

func (s *Store) wantReceived(t *testing.T, want ...string) {
	t.Helper()
	left, _ := os.ReadDir(s.imports.dir)
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	if strings.Join(names, " ") != strings.Join(want, " ") {
		t.Errorf("of what has come, there is %q", names)
	}
}

// receiveFile makes a store receive a file of this machine.
func (s *Store) receiveFile(t *testing.T, digest, file string) error {
	return treesync.Pipe(t.Context(), func(rw io.ReadWriter) error { return imported.Send(t.Context(), file, rw) },
		func(rw io.ReadWriter) error { return s.Receive(t.Context(), digest, rw) })
}

// metered fails after some bytes have been written to it.
type metered struct {
	io.ReadWriter
	left int
}

func (m *metered) Write(b []byte) (int, error) {
	if m.left -= len(b); m.left < 0 {
		return 0, errors.New("gone")
	}
	return m.ReadWriter.Write(b)
}

// TestNotReceived: a file with the wrong digest, or one that does not fit, is not stored.
func TestNotReceived(t *testing.T) {
	s := Open(t.TempDir())
	digest := imported.DigestOf([]byte("content"))
	whole, other := writeFile(t, "a.tar", []byte("content")), writeFile(t, "a.tar", []byte("other"))
	for what, test := range map[string]struct {
		digest, file string
		free         uint64
		kind         problem.Kind
		says         string
	}{
		"missing":   {digest, filepath.Join(t.TempDir(), "none"), 1 << 40, problem.Failed, "no such file"},
		"another":   {digest, other, 1 << 40, problem.Surprise, "changed while it was sent"},
		"full":      {digest, whole, 1 << 20, problem.Unable, "is full"},
		"no digest": {"../../../etc/x", whole, 1 << 40, problem.Failed, "not the digest"},
	} {
		s.disk.free = func(string) (uint64, error) { return test.free, nil }
		err := s.receiveFile(t, test.digest, test.file)
		if problem.ExitCode(err) != int(test.kind) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", what, err)
		}
		s.wantReceived(t)
	}
	s.disk.free = func(string) (uint64, error) { return 1 << 40, nil }
	must(t, s.receiveFile(t, digest, whole))
	info, err := os.Stat(filepath.Join(s.imports.dir, digest))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := s.GC(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	s.wantReceived(t)
}

// TestReceivedOn: the part of a file that was received before an interruption is not sent again,
// and GC removes it.
func TestReceivedOn(t *testing.T) {
	noise := make([]byte, 4<<20)
	rand.NewChaCha8([32]byte{}).Read(noise) //nolint:errcheck // it never fails
	file, digest := writeFile(t, "disk.raw", noise), imported.DigestOf(noise)
	s := Open(t.TempDir())
	s.disk.free = func(string) (uint64, error) { return 1 << 40, nil }
	send := func(bytes int) (int, error) {
		m := &metered{left: bytes}
		err := treesync.Pipe(t.Context(), func(rw io.ReadWriter) error {
			m.ReadWriter = rw
			return imported.Send(t.Context(), file, m)
		}, func(rw io.ReadWriter) error { return s.Receive(t.Context(), digest, rw) })
		return bytes - m.left, err
	}
	if _, err := send(3 << 20); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("cut: %v", err)
	}
	s.wantReceived(t, digest+partialSuffix)
	if sent, err := send(1 << 30); err != nil || sent > 1<<20+4*64<<10 {
		t.Errorf("%d bytes come again: %v", sent, err)
	}
	s.wantReceived(t, digest)
	must(t, os.Remove(filepath.Join(s.imports.dir, digest)))
	if _, err := send(1 << 20); err == nil {
		t.Error("it was not cut")
	}
	if _, err := s.GC(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	s.wantReceived(t)
}

// TestImportChanged: an image with a known digest is not built from other content.
func TestImportChanged(t *testing.T) {
	file := writeFile(t, "root.tar", tarred(t, small...))
	s := Open(t.TempDir())
	l := spec.Base(site.Mirror{}, site.Image{Name: "x", Import: file,
		Stamp: site.ContentStamp(imported.DigestOf([]byte("something else")))})
	err := s.BuildBase(t.Context(), l, site.Mirror{}, sayTo(t))
	if problem.ExitCode(err) != int(problem.Surprise) || !strings.Contains(err.Error(), "it changed while it was read") {
		t.Errorf("%v", err)
	}
	if s.has(l.Digest) {
		t.Error("it is in the store")
	}
}
