package probe

import (
	"golang.org/x/sys/unix"
)

// pageBytes is the minimum amount of data that the kernel returns at once.
const pageBytes = 4096

// A file of the kernel stays open and is read from its beginning each time, into a buffer that is
// reused. If it does not exist, each reading tries to open it again: a node may start and end while
// the probe runs.
type file struct {
	path string
	fd   int // -1 if not open
	text []byte
}

func newFile(path string) *file { return &file{path: path, fd: -1} }

// read returns the whole text, which is valid until the next call, or nil if there is none.
func (f *file) read() []byte {
	if f.fd < 0 {
		fd, err := open(f.path)
		if err != nil {
			return nil
		}
		f.fd = fd
	}
	if f.text == nil {
		f.text = make([]byte, pageBytes)
	}
	// For many of these files, the kernel returns at most a page of whole lines per call and
	// continues there in the next call. If half of a page stays empty, the end was reached, because
	// no line is that long. So most files need one call and not two.
	for n := 0; ; {
		if n == len(f.text) {
			f.text = append(f.text, make([]byte, n)...)
		}
		got, err := unix.Pread(f.fd, f.text[n:], int64(n))
		switch {
		case err == unix.EINTR:
		case err != nil: // such as ENODEV for a removed cgroup
			f.close()
			return nil
		case got == 0 || got < pageBytes/2 && len(f.text)-n >= pageBytes:
			return f.text[:n+got]
		default:
			n += got
		}
	}
}

func (f *file) close() {
	if f.fd >= 0 {
		_ = unix.Close(f.fd)
		f.fd = -1
	}
}

func open(path string) (int, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}
