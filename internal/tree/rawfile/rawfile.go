// Package rawfile reads small files, such as those of /proc, with few system calls: open, read,
// read, close. os.ReadFile makes ten, because it prepares to wait for the file (epoll(7)). Looking
// at a hundred nodes reads a thousand files.
package rawfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// ReadFile reads a file to its end.
func ReadFile(path string) ([]byte, error) {
	fd, err := retryEINTR(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written to it
	text, err := Read(fd, 0)
	if err != nil {
		return nil, &os.PathError{Op: "read", Path: path, Err: err}
	}
	return text, nil
}

// Read reads an open file to its end. If most is not 0, it stops after more than most bytes.
func Read(fd int, most int64) ([]byte, error) {
	text := make([]byte, 0, 1024)
	for {
		if len(text) == cap(text) {
			text = append(text, 0)[:len(text)]
		}
		n, err := retryEINTR(func() (int, error) { return unix.Read(fd, text[len(text):cap(text)]) })
		if err != nil {
			return nil, err
		}
		text = text[:len(text)+n]
		if n == 0 || most > 0 && int64(len(text)) > most {
			return text, nil
		}
	}
}

// retryEINTR repeats a system call that a signal has interrupted.
func retryEINTR(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR {
			return n, err
		}
	}
}
