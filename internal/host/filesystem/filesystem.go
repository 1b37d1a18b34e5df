// Package filesystem reads how full the file systems of a host are.
//
// One that is on a server that is away may never answer, so that each call has a limit. The sizes are
// those of df(1): what only root may still fill counts as used. The package is this short so that the
// state of nodes and the watch of a site count alike.
package filesystem

import (
	"context"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A Usage is how full a file system is, in bytes.
type Usage struct {
	Used, Free int64 // without what is reserved for root
	kind       int64
	id         unix.Fsid
}

// Size returns the bytes that users can fill.
func (u Usage) Size() int64 { return u.Used + u.Free }

// Same reports whether two directories are on one file system. Each subvolume of btrfs has an id of its own.
func (u Usage) Same(other Usage) bool {
	return u.id == other.id || u.kind == unix.BTRFS_SUPER_MAGIC && u.kind == other.kind && u.Size() == other.Size()
}

var statfs = unix.Statfs // variable, so that tests can change it

// Of returns the usage that statfs(2) reports.
func Of(s *unix.Statfs_t) Usage {
	return Usage{int64(s.Blocks-s.Bfree) * s.Bsize, int64(s.Bavail) * s.Bsize, s.Type, s.Fsid}
}

// Read returns the usage of the file system of a directory. It returns false if that is unknown, or does not
// answer before ctx ends.
func Read(ctx context.Context, dir string) (Usage, bool) { return read(ctx, dir, false) }

// ReadNearest is Read of the directory or, if it does not exist, of the nearest one above it.
func ReadNearest(ctx context.Context, dir string) (Usage, bool) { return read(ctx, dir, true) }

func read(ctx context.Context, dir string, nearest bool) (Usage, bool) {
	stat, read := statfs, make(chan Usage, 1)
	go func() { // it may never end
		defer close(read)
		var s unix.Statfs_t
		for stat(dir, &s) != nil {
			if !nearest || dir == "/" || dir == "." {
				return
			}
			dir = filepath.Dir(dir)
		}
		if s.Blocks > 0 {
			read <- Of(&s)
		}
	}()
	select {
	case u, ok := <-read:
		return u, ok
	case <-ctx.Done():
		return Usage{}, false
	}
}
