package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// GC removes unused layers and what killed builders left, and returns the layers it has removed. It
// keeps layers below a used layer, and layers that are being built.
func (s *Store) GC(ctx context.Context, used map[string]bool) ([]Info, error) {
	if err := s.createPrivate(); err != nil {
		return nil, err
	}
	all, err := s.List()
	if err != nil {
		return nil, err
	}
	keep := map[string]bool{}
	for _, info := range all {
		if used[info.Digest] {
			for _, digest := range append(info.Lower, info.Digest) {
				keep[digest] = true
			}
		}
	}
	var removed []Info
	// Backwards: remove layers before those below them, whose titles are prefixes of theirs.
	for i := len(all) - 1; i >= 0; i-- {
		if ctx.Err() != nil {
			return removed, context.Cause(ctx)
		}
		if keep[all[i].Digest] {
			continue
		}
		gone, err := s.locks.ifFree(all[i].Digest, newStaging(s, all[i].Digest).discard)
		if err != nil {
			return removed, fmt.Errorf("remove layer %s: %w", all[i].Digest, err)
		}
		if gone {
			removed = append(removed, all[i])
		}
	}
	err = s.Sweep()
	if err == nil {
		err = s.locks.sweep(s.incoming, anyDigest, removeIncoming)
	}
	err = errors.Join(err, s.locks.sweep(s.imports.dir, anyDigest, s.imports.drop))
	return removed, errors.Join(err, s.Cache.trim(time.Now()))
}

func anyDigest(string) bool { return true }

func removeIncoming(at, _ string) error { return removeTree(at) }

// Sweep removes what killed builders have left, including processes and control groups: everything
// whose lock no process holds.
func (s *Store) Sweep() error {
	left := map[string]bool{}
	for _, dir := range []string{s.stagings, filepath.Join(s.state, "build"), s.Dir} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			if IsDigest(e.Name()) && (dir != s.Dir || !s.has(e.Name())) {
				left[e.Name()] = true
			}
		}
	}
	if err := s.locks.sweep(s.incoming, s.has, removeIncoming); err != nil { // the layer was built here instead
		return err
	}
	if len(left) == 0 {
		return nil
	}
	if err := s.createPrivate(); err != nil {
		return err
	}
	for digest := range left {
		if _, err := s.locks.ifFree(digest, newStaging(s, digest).abandon); err != nil {
			return err
		}
	}
	return nil
}
