// Package tree reaches safely into directory trees that others write: private layers and volumes of
// nodes, snapshots, archives being unpacked, site directories of strangers. It is the only way
// there; the import test of internal/ keeps every other package from paths into such trees.
//
// A Root stands for the directory at the top. Whatever a path below it goes through, it stays
// below: links are followed as a process whose root directory it is would follow them (openat2(2),
// RESOLVE_IN_ROOT), and the magic links of /proc are not followed at all. It holds while others
// rename directories and links under our hands. Only regular files are read, opened without
// waiting, so a named pipe or a device in the place of a file is an error and not a way to hang;
// and whoever reads says how much at most.
//
// Nothing is ever written through what is there: a file is made under another name and renamed into its place.
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

// A Root is the top directory of a tree. It may be used by several goroutines at once.
type Root struct{ topDir }

// ErrNotRegular is the cause of an error about something that is no regular file where one is needed.
var ErrNotRegular = errors.New("not a regular file")

// ErrTooLarge is the cause of an error about something that is larger, or deeper, than the caller takes.
var ErrTooLarge = errors.New("larger than allowed")

// ErrOutside is the cause of an error about a link that leads out of a tree that was opened by OpenBeneath.
var ErrOutside error = unix.EXDEV

// Open opens the tree in a directory. The path to it is the caller's own and trusted; its last part
// must be a directory, and no link.
func Open(dir string) (*Root, error) { return open(dir, unix.RESOLVE_IN_ROOT) }

// OpenBeneath opens the tree in a directory as Open does, but as it is seen from outside: a link
// that leads out of it, as every absolute one does, is not followed inside the tree, but is an
// error whose cause is ErrOutside.
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
		return nil, r.wrong("open", name, err)
	}
	return &Root{topDir{os.NewFile(uintptr(fd), r.at(name)), r.beyond}}, nil
}

// Alone returns the tree without what is mounted in it: whoever can mount there does not decide on
// which file system is written. What is mounted is an error whose cause is ErrOutside.
func (r *Root) Alone() (*Root, error) {
	fd, err := unix.FcntlInt(r.dir.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, r.wrong("open", ".", err)
	}
	return &Root{topDir{os.NewFile(uintptr(fd), r.Name()), r.beyond | unix.RESOLVE_NO_XDEV}}, nil
}

// Close ends the use of a tree.
func (r *Root) Close() error { return r.dir.Close() }

// Lstat tells of a path, of a link itself.
func (r *Root) Lstat(name string) (*unix.Stat_t, error) { return r.stat(name, unix.O_NOFOLLOW) }

// Stat tells of a path, with links followed inside the tree.
func (r *Root) Stat(name string) (*unix.Stat_t, error) { return r.stat(name, 0) }

// Readlink returns what a symbolic link says.
func (r *Root) Readlink(name string) (string, error) {
	fd, err := r.open(name, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return "", r.wrong("readlink", name, err)
	}
	defer unix.Close(fd)                 //nolint:errcheck // it was only looked at
	b := make([]byte, unix.PathMax)      // no link is longer
	n, err := unix.Readlinkat(fd, "", b) // an empty path means the link that is open
	return string(b[:max(n, 0)]), r.wrong("readlink", name, err)
}

// Names returns what is in a directory, sorted; more than most is an error.
func (r *Root) Names(name string, most int) ([]string, error) {
	fd, err := r.open(name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, r.wrong("open", name, err)
	}
	names, err := names(fd, most)
	return names, r.wrong("list", name, err)
}

// names lists an open directory, and closes it.
func names(fd, most int) ([]string, error) {
	f := os.NewFile(uintptr(fd), "directory")
	defer f.Close()
	all, err := f.Readdirnames(most + 1)
	if len(all) > most {
		return nil, fmt.Errorf("more than %d names: %w", most, ErrTooLarge)
	}
	if len(all) == 0 { // Readdirnames says io.EOF of an empty directory
		return nil, nil
	}
	slices.Sort(all)
	return all, err
}

// OpenDown opens a directory of the tree, by the names on the way to it from the top, of which none
// may be a link. They may be longer together than PATH_MAX. The caller closes it.
func (r *Root) OpenDown(names []string) (fd int, err error) {
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

// Exists reports whether there is something at a path, whose last part is not followed. The path to
// it is the caller's own.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
