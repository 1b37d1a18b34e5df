package probe

import (
	"golang.org/x/sys/unix"
)

// page is how much the kernel gives at once, at least.
const page = 4096

// A file of the kernel stays open and is read from its beginning each time, into a buffer that is
// used again. One that is not there yet, or no longer, is looked for again at each reading: a node
// may start and end while the probe runs.
type file struct {
	path string
	fd   int // -1: not open
	text []byte
}

func newFile(path string) *file { return &file{path: path, fd: -1} }

// read returns the whole text, which is good until the next reading; nil: there is none.
func (f *file) read() []byte {
	if f.fd < 0 {
		fd, err := open(f.path)
		if err != nil {
			return nil
		}
		f.fd = fd
	}
	if f.text == nil {
		f.text = make([]byte, page)
	}
	// The kernel gives many of these files as many lines at a time as go into a page, and goes on
	// where it was if asked for what follows. What leaves half of a page empty was the end, since no
	// line is that long: most files cost one call, not two.
	for n := 0; ; {
		if n == len(f.text) {
			f.text = append(f.text, make([]byte, n)...)
		}
		got, err := unix.Pread(f.fd, f.text[n:], int64(n))
		switch {
		case err == unix.EINTR:
		case err != nil: // such as ENODEV of a cgroup that was removed
			f.close()
			return nil
		case got == 0 || got < page/2 && len(f.text)-n >= page:
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
