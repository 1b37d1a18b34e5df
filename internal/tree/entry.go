package tree

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// OpenEntry opens a regular file of an open directory for reading. It does not follow links and
// does not block. The returned Stat_t describes the opened file. If something else has replaced the
// file, it returns an error whose cause is ErrNotRegular. (It does not return an os.File, which
// would ask the kernel for each file whether it can be polled.)
func OpenEntry(dir int, name string) (fd int, st unix.Stat_t, err error) {
	const flags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, err = unix.Openat(dir, name, flags|unix.O_NOATIME, 0)
	if errors.Is(err, unix.EPERM) { // another user owns the file, and this process is not root
		fd, err = unix.Openat(dir, name, flags, 0)
	}
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) { // a link, or a socket
		err = fmt.Errorf("%w: %w", err, ErrNotRegular)
	}
	if err != nil {
		return -1, st, err
	}
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd) //nolint:errcheck // it was not read
		return -1, st, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		unix.Close(fd) //nolint:errcheck // it was not read
		return -1, st, fmt.Errorf("it is %s: %w", Kind(st.Mode), ErrNotRegular)
	}
	return fd, st, nil
}

// StatEntry returns the attributes of an entry of an open directory. It does not follow links.
func StatEntry(dir int, name string) (st unix.Stat_t, err error) {
	err = unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return st, err
}

// ReadLink returns the target of a symbolic link in an open directory.
func ReadLink(dir int, name string) (string, error) {
	b := make([]byte, unix.PathMax) // no link is longer
	n, err := unix.Readlinkat(dir, name, b)
	if errors.Is(err, unix.EINVAL) { // it is not a link any more
		err = fmt.Errorf("%w: %w", err, ErrGone)
	}
	return string(b[:max(n, 0)]), err
}

// IsWhiteout reports whether an entry is what overlayfs puts in the place of a removed file: a
// character device 0:0, which opens nothing. Any other device opens something of the host, and no
// copy contains one.
func IsWhiteout(st *unix.Stat_t) bool {
	return st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0
}

// IsDevice reports whether an entry is a device node, but not a whiteout.
func IsDevice(st *unix.Stat_t) bool {
	kind := st.Mode & unix.S_IFMT
	return (kind == unix.S_IFCHR || kind == unix.S_IFBLK) && !IsWhiteout(st)
}

// Attributes returns the extended attributes of an entry of an open directory, or nil if it has
// none. They include ACLs and capabilities.
func Attributes(dir int, name string) (map[string][]byte, error) {
	at := procPath(dir, name)
	return attributes(
		func(b []byte) (int, error) { return unix.Llistxattr(at, b) },
		func(attr string, b []byte) (int, error) { return unix.Lgetxattr(at, attr, b) })
}

// FileAttributes returns the extended attributes of an open file or directory.
func FileAttributes(fd int) (map[string][]byte, error) {
	return attributes(
		func(b []byte) (int, error) { return unix.Flistxattr(fd, b) },
		func(attr string, b []byte) (int, error) { return unix.Fgetxattr(fd, attr, b) })
}

// SetAttribute sets an extended attribute of an entry of an open directory.
func SetAttribute(dir int, name, attr string, value []byte) error {
	return unix.Lsetxattr(procPath(dir, name), attr, value, 0)
}

// RemoveAttribute removes an extended attribute of an entry of an open directory.
func RemoveAttribute(dir int, name, attr string) error {
	return unix.Lremovexattr(procPath(dir, name), attr)
}

// procPath returns a path of an entry of an open directory, for calls that only take paths. The path
// contains no link of the tree before the entry.
func procPath(dir int, name string) string { return fmt.Sprintf("/proc/self/fd/%d/%s", dir, name) }

func attributes(list func([]byte) (int, error), get func(string, []byte) (int, error)) (map[string][]byte, error) {
	if n, err := list(nil); n == 0 || errors.Is(err, unix.ENOTSUP) { // most files have none
		if errors.Is(err, unix.ENOTSUP) {
			err = nil
		}
		return nil, err
	}
	text, err := growBuffer(list)
	if err != nil || len(text) == 0 {
		return nil, err
	}
	all := map[string][]byte{}
	for attr := range strings.SplitSeq(strings.TrimSuffix(string(text), "\x00"), "\x00") {
		value, err := growBuffer(func(b []byte) (int, error) { return get(attr, b) })
		if errors.Is(err, unix.ENODATA) {
			continue // it has just been removed
		}
		if err != nil {
			return nil, fmt.Errorf("attribute %s: %w", attr, err)
		}
		all[attr] = value
	}
	return all, nil
}

// growBuffer calls call with a buffer that is large enough.
func growBuffer(call func([]byte) (int, error)) ([]byte, error) {
	for _, size := range []int{512, 64 << 10} { // XATTR_SIZE_MAX and XATTR_LIST_MAX
		b := make([]byte, size)
		n, err := call(b)
		if err == nil {
			return b[:n], nil
		}
		if !errors.Is(err, unix.ERANGE) {
			return nil, err
		}
	}
	return nil, unix.ERANGE
}
