package volume

import (
	"slices"

	"golang.org/x/sys/unix"
)

// A known is a path of the copy, and what its source was like when it was copied.
type known struct {
	state
	up     *known // the directory that it is in; nil: it is the top
	name   string
	inside map[string]*known // of a directory
	met    int               // the last round that came to it
	as     uint64            // of a file of several names: the inode of its copy
	bare   bool              // of a directory: its copy has no extended attributes
}

// A state is what the kernel says of a file.
type state struct {
	device, inode   uint64
	links           uint64
	mode            uint32
	uid, gid        uint32
	rdev            uint64
	size            int64
	modified, since int64 // mtime and ctime in nanoseconds
}

func stateOf(s *unix.Stat_t) state {
	current := state{
		device: s.Dev, inode: s.Ino, links: uint64(s.Nlink), mode: s.Mode, uid: s.Uid,
		gid:      s.Gid, //nolint:unconvert // 32 bits on some machines
		rdev:     s.Rdev,
		modified: s.Mtim.Nano(), since: s.Ctim.Nano(),
	}
	if !current.directory() {
		current.size = s.Size // that of a directory tells nothing
	}
	return current
}

func (s state) directory() bool { return s.mode&unix.S_IFMT == unix.S_IFDIR }

// several reports whether a file has names besides this one.
func (s state) several() bool { return s.links > 1 && !s.directory() }

// path returns the names from the top down to a known.
func (k *known) path() []string {
	var names []string
	for ; k.up != nil; k = k.up {
		names = append(names, k.name)
	}
	slices.Reverse(names)
	return names
}
