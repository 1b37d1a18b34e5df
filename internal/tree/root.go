// Package tree safely accesses directory trees that others write to: private layers and volumes of
// nodes, snapshots, archives being unpacked, site directories of other users. It is the only way to
// access them. The import test of internal/ keeps every other package from using paths into such
// trees.
//
// A Root is the directory at the top. Whatever a path goes through, it stays below the Root. Links
// are followed as if the Root were the root directory of the process (openat2(2), RESOLVE_IN_ROOT).
// The magic links of /proc are not followed at all. This holds even while other processes rename
// directories and links. Only regular files are read, and they are opened without blocking. So a
// named pipe or a device in the place of a file is an error and cannot block the caller. Every
// reader gives a maximum size.
//
// Nothing is ever written through existing files: a new file is created under another name and
// renamed to its path.
package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"
)

// A Root is the top directory of a tree. Several goroutines may use it at once.
type Root struct{ topDir }

// ErrNotRegular is the cause of an error when something is not a regular file where one is needed.
var ErrNotRegular = errors.New("not a regular file")

// ErrTooLarge is the cause of an error when something is larger or deeper than the caller allows.
var ErrTooLarge = errors.New("larger than allowed")

// ErrOutside is the cause of an error about a link that leads out of a tree opened by OpenBeneath.
var ErrOutside error = unix.EXDEV

// Open opens the tree in a directory. The path is trusted. Its last part must be a directory, not a
// link.
func Open(dir string) (*Root, error) { return open(dir, unix.RESOLVE_IN_ROOT) }

// OpenBeneath opens the tree in a directory as Open does, but treats links as a process outside of
// the tree would. A link that leads out of the tree, as every absolute link does, is an error whose
// cause is ErrOutside.
func OpenBeneath(dir string) (*Root, error) { return open(dir, unix.RESOLVE_BENEATH) }

func open(dir string, beyond uint64) (*Root, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	return &Root{topDir{os.NewFile(uintptr(fd), dir), beyond}}, nil
}

// Sub opens the tree in a directory of the tree.
func (r *Root) Sub(name string) (*Root, error) {
	fd, err := r.open(name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, r.pathError("open", name, err)
	}
	return &Root{topDir{os.NewFile(uintptr(fd), r.at(name)), r.beyond}}, nil
}

// WithoutMounts returns the tree without the file systems mounted in it, so that users who may mount there
// cannot choose the file system that is written to. A path into a mounted file system is an error
// whose cause is ErrOutside.
func (r *Root) WithoutMounts() (*Root, error) {
	fd, err := unix.FcntlInt(r.dir.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, r.pathError("open", ".", err)
	}
	return &Root{topDir{os.NewFile(uintptr(fd), r.Name()), r.beyond | unix.RESOLVE_NO_XDEV}}, nil
}

// Close closes the tree.
func (r *Root) Close() error { return r.dir.Close() }

// Lstat returns the attributes of a path. It does not follow a link in the last part.
func (r *Root) Lstat(name string) (*unix.Stat_t, error) { return r.stat(name, unix.O_NOFOLLOW) }

// Stat returns the attributes of a path. It follows links inside the tree.
func (r *Root) Stat(name string) (*unix.Stat_t, error) { return r.stat(name, 0) }

// Readlink returns the target of a symbolic link.
func (r *Root) Readlink(name string) (string, error) {
	fd, err := r.open(name, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return "", r.pathError("readlink", name, err)
	}
	defer unix.Close(fd)                 //nolint:errcheck // it was only looked at
	b := make([]byte, unix.PathMax)      // no link is longer
	n, err := unix.Readlinkat(fd, "", b) // an empty path means the link that is open
	return string(b[:max(n, 0)]), r.pathError("readlink", name, err)
}

// Names returns the sorted names in a directory. More than most names are an error.
func (r *Root) Names(name string, most int) ([]string, error) {
	fd, err := r.open(name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, r.pathError("open", name, err)
	}
	names, err := readNames(fd, most)
	return names, r.pathError("list", name, err)
}

// readNames lists an open directory and closes it.
func readNames(fd, most int) ([]string, error) {
	f := os.NewFile(uintptr(fd), "directory")
	defer f.Close()
	all, err := f.Readdirnames(most + 1)
	if len(all) > most {
		return nil, fmt.Errorf("more than %d names: %w", most, ErrTooLarge)
	}
	if len(all) == 0 { // Readdirnames returns io.EOF for an empty directory
		return nil, nil
	}
	slices.Sort(all)
	return all, err
}

// OpenNoFollow opens a directory of the tree by the names on the way from the top. None of them may be
// a link. Together they may be longer than PATH_MAX. The caller must close the directory.
func (r *Root) OpenNoFollow(names []string) (fd int, err error) {
	fd, err = unix.Openat(r.Fd(), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for len(names) > 0 && err == nil {
		part, n := "", 0
		for n < len(names) && len(part)+1+len(names[n]) < unix.PathMax-1 {
			part, n = path.Join(part, names[n]), n+1
		}
		names = names[n:]
		above := fd
		fd, err = unix.Openat2(above, part, &unix.OpenHow{
			Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
		})
		unix.Close(above) //nolint:errcheck // it was only gone through
	}
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: r.Name(), Err: err}
	}
	return fd, nil
}

// Exists reports whether a path exists. The path is trusted, but its last part is not followed.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
