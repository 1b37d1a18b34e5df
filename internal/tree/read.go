package tree

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"orrery/internal/tree/rawfile"
)

// OpenFile opens a regular file for reading, with links followed inside the tree. It waits for nothing.
func (r *Root) OpenFile(name string) (*os.File, error) {
	fd, err := r.open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, r.wrong("open", name, err)
	}
	f := os.NewFile(uintptr(fd), r.at(name))
	if _, err := regular(fd); err != nil {
		f.Close()
		return nil, r.wrong("open", name, err)
	}
	return f, nil
}

// ReadFile reads a regular file of at most so many bytes.
func (r *Root) ReadFile(name string, most int64) ([]byte, error) {
	fd, err := r.open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, r.wrong("open", name, err)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written to it
	text, err := readRegular(fd, most)
	return text, r.wrong("read", name, err)
}

// readRegular reads at most so many bytes of a regular file, and does not begin with what is larger.
func readRegular(fd int, most int64) ([]byte, error) {
	size, err := regular(fd)
	if err != nil {
		return nil, err
	}
	tooLarge := fmt.Errorf("more than %d bytes: %w", most, ErrTooLarge)
	if size > most {
		return nil, tooLarge
	}
	text, err := rawfile.Read(fd, most) // it may grow, and files of /proc do not tell their size
	if err == nil && int64(len(text)) > most {
		return nil, tooLarge
	}
	return text, err
}

// OpenFile opens a regular file for reading whose path is trusted, such as one that an operator
// names, but not what is there: a named pipe or a device is an error.
func OpenFile(path string) (*os.File, error) {
	fd, err := openAt(path)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), path)
	if _, err := regular(fd); err != nil {
		f.Close()
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return f, nil
}

// ReadFile reads a regular file of at most so many bytes, as OpenFile opens it.
func ReadFile(path string, most int64) ([]byte, error) {
	fd, err := openAt(path)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written to it
	text, err := readRegular(fd, most)
	if err != nil {
		return nil, &os.PathError{Op: "read", Path: path, Err: err}
	}
	return text, nil
}

// openAt opens what is at a path for reading, and waits for nothing.
func openAt(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// regular returns the size of a regular file. What is something else is an error.
func regular(fd int) (size int64, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return 0, fmt.Errorf("it is %s: %w", Kind(st.Mode), ErrNotRegular)
	}
	return st.Size, nil
}

// Kind names what a mode of stat(2) is of.
func Kind(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return "a regular file"
	case unix.S_IFDIR:
		return "a directory"
	case unix.S_IFLNK:
		return "a link"
	case unix.S_IFIFO:
		return "a named pipe"
	case unix.S_IFSOCK:
		return "a socket"
	case unix.S_IFCHR, unix.S_IFBLK:
		return "a device"
	}
	return "of an unknown kind"
}
