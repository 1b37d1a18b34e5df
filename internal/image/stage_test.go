package image

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"orrery/internal/site/spec"
)

// TestStage: a layer is built in an empty directory under its lock. If the directory cannot be
// created, stage returns an error, and the lock is free for the next builder.
func TestStage(t *testing.T) {
	s := Open(t.TempDir())
	l := &spec.Layer{Digest: spec.Digest("a")}
	free := func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		g, err := s.stage(ctx, l)
		if g != nil {
			g.close()
		}
		return err == nil
	}
	left := mkdir(t, s.stagings, l.Digest, "tree") // left by a killed builder
	g, err := s.stage(t.Context(), l)
	must(t, err)
	if _, err := os.Lstat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what a killed builder left is still there: %v", err)
	}
	if entries, err := os.ReadDir(g.dir); err != nil || len(entries) > 0 {
		t.Errorf("in the new directory is %v (%v)", entries, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if second, err := s.stage(ctx, l); err == nil || second != nil {
		t.Error("two builders have one layer")
	}
	g.close()
	if _, err := os.Lstat(g.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory stays: %v", err)
	}
	must(t, os.RemoveAll(s.stagings))
	must(t, os.WriteFile(s.stagings, nil, 0o600))
	if g, err := s.stage(t.Context(), l); err == nil || g != nil {
		t.Errorf("without a place to build: %v, %v", g, err)
	}
	must(t, os.Remove(s.stagings))
	if !free() {
		t.Error("the lock is held by a builder that failed")
	}
	must(t, os.RemoveAll(s.locks.dir))
	must(t, os.WriteFile(s.locks.dir, nil, 0o600))
	if g, err := s.stage(t.Context(), l); err == nil || g != nil {
		t.Errorf("without a lock: %v, %v", g, err)
	}
	must(t, os.Remove(s.locks.dir))
	must(t, os.MkdirAll(filepath.Join(s.Dir, l.Digest), 0o755)) // without a record it is not a layer
	if !free() {
		t.Error("half a layer is in the way")
	}
	made := onTop(t, s, &spec.Layer{Title: "base"}, "b")
	if g, err := s.stage(t.Context(), made); g != nil || err != nil {
		t.Errorf("a layer that is there is built again: %v, %v", g, err)
	}
}
