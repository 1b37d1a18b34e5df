package image

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"orrery/internal/image/imported"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestReceived: an image is made of a file that has come, which is the same layer as where it came from, and nothing is left of the file.
func TestReceived(t *testing.T) {
	for name, content := range map[string][]byte{"root.tar": tarred(t, small...), "root.tar.gz": compress(t, "gz", tarred(t, small...))} {
		file := writeFile(t, name, content)
		img := site.Image{Name: "x", Import: file, Stamp: site.ContentStamp(imported.DigestOf(content))}
		here, there := Open(t.TempDir()), Open(t.TempDir())
		at := spec.Base(site.Mirror{}, img)
		img.Import = name
		away := spec.Base(site.Mirror{}, img)
		if at.Digest != away.Digest {
			t.Fatalf("%s: another place makes another layer", name)
		}
		err := there.BuildBase(t.Context(), away, site.Mirror{}, sayTo(t))
		if problem.Exit(err) != int(problem.Failed) || !strings.Contains(err.Error(), "has not come") {
			t.Errorf("%s: without the file: %v", name, err)
		}
		if err := there.Receive(t.Context(), img.Content(), strings.NewReader(string(content))); err != nil {
			t.Fatal(err)
		}
		for s, l := range map[*Store]*spec.Layer{here: at, there: away} {
			if err := s.BuildBase(t.Context(), l, site.Mirror{}, sayTo(t)); err != nil {
				t.Fatal(err)
			}
			checkSmall(t, s.Tree(l.Digest))
		}
		one, err := here.Word(at.Digest)
		if err != nil {
			t.Fatal(err)
		}
		if two, err := there.Word(at.Digest); err != nil || one != two {
			t.Errorf("%s: the layers are %+v and %+v: %v", name, one, two, err)
		}
		there.wantReceived(t)
	}
}

func (s *Store) wantReceived(t *testing.T, want ...string) {
	t.Helper()
	left, _ := os.ReadDir(s.received())
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	if strings.Join(names, " ") != strings.Join(want, " ") {
		t.Errorf("of what has come, there is %q", names)
	}
}

// TestNotReceived: what does not come whole, or not as it should be, or does not fit is not there.
func TestNotReceived(t *testing.T) {
	s := Open(t.TempDir())
	digest := imported.DigestOf([]byte("content"))
	for what, test := range map[string]struct {
		digest string
		from   io.Reader
		free   uint64
		kind   problem.Kind
		says   string
	}{
		"cut":       {digest, io.MultiReader(strings.NewReader("cont"), iotest.ErrReader(errors.New("gone"))), 1 << 40, problem.Failed, "has not come"},
		"another":   {digest, strings.NewReader("other"), 1 << 40, problem.Surprise, "changed while it was sent"},
		"full":      {digest, strings.NewReader("content"), 1 << 20, problem.Unable, "is full"},
		"no digest": {"../../../etc/x", strings.NewReader("content"), 1 << 40, problem.Failed, "not the digest"},
	} {
		s.free = func(string) (uint64, error) { return test.free, nil }
		err := s.Receive(t.Context(), test.digest, test.from)
		if problem.Exit(err) != int(test.kind) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", what, err)
		}
		s.wantReceived(t)
	}
	if err := s.Receive(t.Context(), digest, strings.NewReader("content")); err == nil { // of the last one, there may be no room
		s.wantReceived(t, digest)
	}
	s.free = func(string) (uint64, error) { return 1 << 40, nil }
	if err := s.Receive(t.Context(), digest, strings.NewReader("content")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(s.received(), digest))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := s.GC(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	s.wantReceived(t)
}

// TestImportChanged: an image of which it is known what is in it is made of nothing else.
func TestImportChanged(t *testing.T) {
	file := writeFile(t, "root.tar", tarred(t, small...))
	s := Open(t.TempDir())
	l := spec.Base(site.Mirror{}, site.Image{Name: "x", Import: file, Stamp: site.ContentStamp(imported.DigestOf([]byte("something else")))})
	err := s.BuildBase(t.Context(), l, site.Mirror{}, sayTo(t))
	if problem.Exit(err) != int(problem.Surprise) || !strings.Contains(err.Error(), "it changed while it was read") {
		t.Errorf("%v", err)
	}
	if s.has(l.Digest) {
		t.Error("it is in the store")
	}
}
