package image

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/test/need"
)

// realState returns the store of the tests that build for real. It keeps a base image and
// downloads, so that only the first run of these tests takes minutes. ORRERY_TEST_STATE names
// another store.
func realState(t *testing.T) *Store {
	t.Helper()
	need.Integration(t)
	for _, program := range []string{"lxc-start", "mmdebstrap"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("needs " + program)
		}
	}
	// a store of its own, because GC removes the layers of other tests
	return Open(filepath.Join(need.State(), "image"))
}

var removeOld sync.Once

// realBase returns a base image of Debian 12 as the current code builds it.
func realBase(t *testing.T, s *Store) *spec.Layer { return realSuite(t, s, "bookworm") }

func realSuite(t *testing.T, s *Store, suite string) *spec.Layer {
	t.Helper()
	l := spec.Base(site.Mirror{}, site.Image{Name: "debian", Suite: suite})
	for _, file := range []string{"bootstrap.go", "tools.go", "fit.go", "tidy.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		l.Parts[file] = spec.DigestBytes(text)
	}
	l.Digest = spec.Digest(l.Parts)
	removeOld.Do(func() {
		if suite != "bookworm" {
			return // trying another suite must not remove the base of the others
		}
		if _, err := s.GC(context.Background(), map[string]bool{l.Digest: true}); err != nil {
			t.Fatal(err)
		}
	})
	if err := s.BuildBase(context.Background(), l, site.Mirror{}, sayTo(t)); err != nil {
		t.Fatal(err)
	}
	return l
}

// testLayer returns the recipe of a layer on a base. The layer is removed when the test ends.
func testLayer(t *testing.T, s *Store, base *spec.Layer) *spec.Layer {
	t.Helper()
	parts := spec.PartDigests{"test": t.Name()}
	l := &spec.Layer{
		Digest: spec.Digest([]any{base.Digest, parts}), Title: base.Title + " + " + t.Name(), Base: base.Digest, Parts: parts,
	}
	gone := func() {
		if err := s.drop(l.Digest); err != nil {
			t.Error(err)
		}
	}
	gone()
	t.Cleanup(gone)
	return l
}

// drop removes a layer, even if it is incomplete.
func (s *Store) drop(digest string) error {
	if s.has(digest) {
		if _, err := s.locks.ifFree(digest, newStaging(s, digest).discard); err != nil {
			return err
		}
	}
	return s.Sweep()
}
