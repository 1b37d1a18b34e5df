package tree

import (
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// Merge moves a file or directory to another path of the same file system. A directory is merged
// into an existing directory. A file or link replaces an existing file or link, which is not
// followed. The paths to both parent directories are trusted.
func Merge(from, to string) error {
	source, err := unix.Open(path.Dir(from), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path.Dir(from), Err: err}
	}
	defer unix.Close(source) //nolint:errcheck // nothing was written to it
	dest, err := unix.Open(path.Dir(to), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path.Dir(to), Err: err}
	}
	defer unix.Close(dest) //nolint:errcheck // nothing was written to it
	return merge(source, path.Base(from), dest, path.Base(to), to)
}

// merge moves an entry of one open directory to another. Messages show the path at.
func merge(source int, from string, dest int, to, at string) error {
	var moved, existing unix.Stat_t
	err := unix.Fstatat(source, from, &moved, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil {
		err = unix.Fstatat(dest, to, &existing, unix.AT_SYMLINK_NOFOLLOW)
	}
	dir := func(st *unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFDIR }
	switch {
	case err != nil && err != unix.ENOENT:
	case err == nil && dir(&moved) && dir(&existing):
		return mergeDirectory(source, from, dest, to, at)
	case err == nil && dir(&existing):
		err = unix.EISDIR
	case err == nil && dir(&moved) && existing.Mode&unix.S_IFMT != unix.S_IFLNK:
		err = unix.ENOTDIR
	default:
		if err == nil && dir(&moved) { // rename(2) does not replace a non-directory by a directory
			_ = unix.Unlinkat(dest, to, 0)
		}
		err = unix.Renameat(source, from, dest, to)
	}
	if err != nil {
		return &os.PathError{Op: "put", Path: DisplayPath(at), Err: err}
	}
	return nil
}

func mergeDirectory(source int, from string, dest int, to, at string) error {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	inner, err := unix.Openat(source, from, flags, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: DisplayPath(at), Err: err}
	}
	defer unix.Close(inner) //nolint:errcheck // nothing was written to it
	target, err := unix.Openat(dest, to, flags, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: DisplayPath(at), Err: err}
	}
	defer unix.Close(target) //nolint:errcheck // nothing was written to it
	var st unix.Stat_t
	if err := unix.Fstat(inner, &st); err != nil { // read the times before the moves change them
		return &os.PathError{Op: "stat", Path: DisplayPath(at), Err: err}
	}
	again, err := unix.Openat(inner, ".", flags, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: DisplayPath(at), Err: err}
	}
	all, err := readNames(again, DefaultBounds.Names)
	if err != nil {
		return &os.PathError{Op: "list", Path: DisplayPath(at), Err: err}
	}
	for _, name := range all {
		if err := merge(inner, name, target, name, path.Join(at, name)); err != nil {
			return err
		}
	}
	if err := unix.Fchmod(target, st.Mode&0o7777); err != nil {
		return &os.PathError{Op: "chmod", Path: DisplayPath(at), Err: err}
	}
	return unix.UtimesNanoAt(dest, to, []unix.Timespec{st.Atim, st.Mtim}, unix.AT_SYMLINK_NOFOLLOW)
}
