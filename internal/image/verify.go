package image

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"orrery/internal/host"
	"orrery/internal/image/sums"
	"orrery/internal/problem"
)

// Verify reads a whole layer and compares it with what was built. The problem names the first path
// that differs.
func (s *Store) Verify(ctx context.Context, digest string) error {
	if !s.has(digest) {
		return problem.New(problem.Failed, "layer %s is not in the store", digest).At(s.Dir).
			Try("`orrery image ls` lists the layers in the store")
	}
	held, err := s.locks.layer(ctx, digest, host.Shared) // keep GC from removing the layer
	if err != nil {
		return err
	}
	defer held.Release()
	r, err := s.Record(digest)
	if err != nil {
		return broken(s, digest, err)
	}
	current, err := reread(ctx, s.Tree(digest), r.Content)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return problem.New(problem.Failed, "layer %s (%s) cannot be read", digest, r.Title).Because(err).
			Try("%s", rebuildAdvice(s, digest))
	}
	if current.digest() == r.Content {
		return nil
	}
	recorded, err := readManifest(filepath.Join(s.Dir, digest, "manifest.gz"))
	difference := "its list of files is damaged too"
	if err == nil && recorded.digest() == r.Content {
		difference = firstDifference(recorded, current)
	}
	return problem.New(problem.Failed, "layer %s (%s) differs from what was built: %s", digest, r.Title, difference).
		At(s.Tree(digest)).Try("%s", rebuildAdvice(s, digest))
}

// reread returns the manifest of a tree as it is now. Content is the recorded digest. Versions of
// Orrery before decision 72 used plain digests for large files as well, so reread tries both kinds.
func reread(ctx context.Context, tree, content string) (manifest, error) {
	var large atomic.Bool
	current, _, err := scan(ctx, tree, func(ctx context.Context, f *os.File) (string, error) {
		if info, err := f.Stat(); err == nil && info.Size() >= sums.MinPiecewise {
			large.Store(true)
		}
		return sums.Digest(ctx, f, nil)
	})
	if err != nil || current.digest() == content || !large.Load() {
		return current, err
	}
	former, _, err := scan(ctx, tree, func(ctx context.Context, f *os.File) (string, error) {
		return sums.Plain(ctx, f, nil)
	})
	if err == nil && former.digest() == content {
		return former, nil
	}
	return current, err
}

func rebuildAdvice(s *Store, digest string) string {
	return fmt.Sprintf("destroy the nodes that use it, remove %s, and `orrery up` builds it again",
		filepath.Join(s.Dir, digest))
}

// firstDifference returns the first path, in order, whose lines differ in two manifests, and how it
// differs.
func firstDifference(recorded, current manifest) string {
	before, after := recorded.byPath(), current.byPath()
	var first, how string
	note := func(path, what string) {
		if first == "" || path < first {
			first, how = path, what
		}
	}
	for path, line := range before {
		if now, ok := after[path]; !ok {
			note(path, "is gone")
		} else if now != line {
			note(path, "has changed")
		}
	}
	for path := range after {
		if _, ok := before[path]; !ok {
			note(path, "was added")
		}
	}
	return first + " " + how
}
