package volume

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A tree is what is in a directory, by path from there; "." is the directory itself.
type tree map[string]entry

// An entry is what the kernel says of a file.
type entry struct {
	device, inode   uint64
	links           uint64
	mode            uint32
	uid, gid        uint32
	rdev            uint64
	size, disk      int64
	modified, since int64 // mtime and ctime in nanoseconds
}

func (e entry) directory() bool { return e.mode&unix.S_IFMT == unix.S_IFDIR }

// untouched reports whether a file is as it was. When its blocks get their places on the disk tells nothing.
func (e entry) untouched(was entry) bool {
	e.disk = was.disk
	return e == was
}

// alike reports whether a copy could be that of a file: all but its content and its extended attributes.
func (e entry) alike(copied entry) bool {
	if !e.directory() && e.size != copied.size || e.device0() != copied.device0() {
		return false
	}
	return e.mode == copied.mode && e.uid == copied.uid && e.gid == copied.gid && e.modified == copied.modified
}

// device0 gives which device a device file stands for.
func (e entry) device0() uint64 {
	if kind := e.mode & unix.S_IFMT; kind == unix.S_IFCHR || kind == unix.S_IFBLK {
		return e.rdev
	}
	return 0
}

// look gives the tree in a directory. What vanishes while it looks is not in it. Neither are sockets: they lead nowhere once their
// process has ended.
func look(root string) (tree, error) {
	all := tree{}
	var at func(path string) error
	at = func(path string) error {
		var s unix.Stat_t
		if err := unix.Lstat(filepath.Join(root, path), &s); err != nil {
			return gone(err, path)
		}
		e := entryOf(&s)
		if e.mode&unix.S_IFMT == unix.S_IFSOCK {
			return nil
		}
		all[path] = e
		if !e.directory() {
			return nil
		}
		names, err := namesIn(filepath.Join(root, path))
		if err != nil {
			return gone(err, path)
		}
		for _, name := range names {
			if err := at(filepath.Join(path, name)); err != nil {
				return err
			}
		}
		return nil
	}
	return all, at(".")
}

func gone(err error, path string) error {
	if path != "." && (errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)) {
		return nil
	}
	return &os.PathError{Op: "look at", Path: path, Err: err}
}

func namesIn(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

func entryOf(s *unix.Stat_t) entry {
	return entry{
		device: s.Dev, inode: s.Ino, links: uint64(s.Nlink), mode: s.Mode, uid: s.Uid, gid: s.Gid, rdev: s.Rdev, size: s.Size, disk: s.Blocks * 512, //nolint:unconvert // 32 bits on some machines
		modified: s.Mtim.Nano(), since: s.Ctim.Nano(),
	}
}
