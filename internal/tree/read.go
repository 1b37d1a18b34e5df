package tree

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// OpenFile opens a regular file for reading, with links followed inside the tree. It waits for nothing.
func (r *Root) OpenFile(name string) (*os.File, error) {
	fd, err := r.open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, r.wrong("open", name, err)
	}
	f := os.NewFile(uintptr(fd), r.at(name))
	if err := regular(fd); err != nil {
		f.Close()
		return nil, r.wrong("open", name, err)
	}
	return f, nil
}

// ReadFile reads a regular file of at most so many bytes.
func (r *Root) ReadFile(name string, most int64) ([]byte, error) {
	f, err := r.OpenFile(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := readAll(f, most)
	return text, r.wrong("read", name, err)
}

// readAll reads at most so many bytes, and does not begin with what is larger.
func readAll(f *os.File, most int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > most {
		return nil, fmt.Errorf("more than %d bytes: %w", most, ErrTooLarge)
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1)) // it may grow, and files of /proc do not tell their size
	if err == nil && int64(len(text)) > most {
		return nil, fmt.Errorf("more than %d bytes: %w", most, ErrTooLarge)
	}
	return text, err
}

// OpenFile opens a regular file for reading whose path is trusted, such as one that an operator names, but not what is there: a named
// pipe or a device is an error.
func OpenFile(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	if err := regular(fd); err != nil {
		f.Close()
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return f, nil
}

// ReadFile reads a regular file of at most so many bytes, as OpenFile opens it.
func ReadFile(path string, most int64) ([]byte, error) {
	f, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := readAll(f, most)
	if err != nil {
		return nil, &os.PathError{Op: "read", Path: path, Err: err}
	}
	return text, nil
}

func regular(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return fmt.Errorf("it is %s: %w", Kind(st.Mode), ErrNotRegular)
	}
	return nil
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
