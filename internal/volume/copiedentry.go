package volume

import (
	"slices"

	"golang.org/x/sys/unix"
)

// A copiedEntry is a path of the copy, and the state of its source when it was copied.
type copiedEntry struct {
	fileState
	up     *copiedEntry // its directory, or nil for the top
	name   string
	inside map[string]*copiedEntry // for directories
	met    int                     // the last round that reached it
	as     uint64                  // for a file with several names: the inode of its copy
	bare   bool                    // for directories: the copy has no extended attributes
}

// A fileState is a file's metadata from the kernel.
type fileState struct {
	device, inode   uint64
	links           uint64
	mode            uint32
	uid, gid        uint32
	rdev            uint64
	size            int64
	modified, since int64 // mtime and ctime in nanoseconds
}

func stateOf(s *unix.Stat_t) fileState {
	current := fileState{
		links:  uint64(s.Nlink), //nolint:unconvert // 32 bits on some machines
		device: s.Dev, inode: s.Ino, mode: s.Mode, uid: s.Uid, gid: s.Gid,
		rdev:     s.Rdev,
		modified: s.Mtim.Nano(), since: s.Ctim.Nano(),
	}
	if !current.isDir() {
		current.size = s.Size // the size of a directory means nothing
	}
	return current
}

func (s fileState) isDir() bool { return s.mode&unix.S_IFMT == unix.S_IFDIR }

// hasOtherNames reports whether a file has other names.
func (s fileState) hasOtherNames() bool { return s.links > 1 && !s.isDir() }

// path returns the names from the top down to a known.
func (k *copiedEntry) path() []string {
	var names []string
	for ; k.up != nil; k = k.up {
		names = append(names, k.name)
	}
	slices.Reverse(names)
	return names
}
