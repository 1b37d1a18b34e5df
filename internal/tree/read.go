package tree

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"orrery/internal/tree/rawfile"
)

// OpenFile opens a regular file for reading. It follows links inside the tree and does not block.
func (r *Root) OpenFile(name string) (*os.File, error) {
	fd, err := r.open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, r.pathError("open", name, err)
	}
	f := os.NewFile(uintptr(fd), r.at(name))
	if _, err := regular(fd); err != nil {
		f.Close()
		return nil, r.pathError("open", name, err)
	}
	return f, nil
}

// ReadFile reads a regular file of at most most bytes. It follows links inside the tree.
func (r *Root) ReadFile(name string, most int64) ([]byte, error) {
	fd, err := r.open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, r.pathError("open", name, err)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written to it
	text, err := readRegular(fd, most)
	return text, r.pathError("read", name, err)
}

// readRegular reads a regular file. It returns ErrTooLarge if the file is larger than most bytes.
func readRegular(fd int, most int64) ([]byte, error) {
	size, err := regular(fd)
	if err != nil {
		return nil, err
	}
	tooLarge := fmt.Errorf("more than %d bytes: %w", most, ErrTooLarge)
	if size > most {
		return nil, tooLarge
	}
	text, err := rawfile.Read(fd, most) // the file may grow, and files of /proc report the size 0
	if err == nil && int64(len(text)) > most {
		return nil, tooLarge
	}
	return text, err
}

// OpenFile opens a regular file for reading by a trusted path, such as one that an operator names.
// The file itself is not trusted: OpenFile returns an error for a named pipe or a device.
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

// ReadFile reads a regular file of at most most bytes. It opens the file like OpenFile.
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

// openAt opens a path for reading and does not block.
func openAt(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// regular returns the size of a regular file. It returns an error for anything else.
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

// Kind names the file type of a mode of stat(2).
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
