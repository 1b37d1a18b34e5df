package agent

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A port is a serial port of virtio, or a console of Xen. It is one file, on which clients come and
// go, and may still contain data of the last client. Without a client, virtio's port returns 0
// bytes at once. Xen's console blocks, and does not report when a client goes.
//
// The kernel wakes readers of a port whenever it changes, and Go's poller checks the port only then
// (EPOLLET). So there is no busy polling, and no signal is needed.
type port struct {
	from, to *os.File // the same file, except in tests
	raw      syscall.RawConn
	used     bool // data was read since the last client was seen to go
	endless  bool // the end of a client cannot be detected
}

func openPort(path string) (*port, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	p, err := newPort(f, f)
	if err == nil {
		err = p.raw.Control(func(fd uintptr) { p.endless, err = makeRaw(int(fd)) })
	}
	if err != nil {
		_ = f.Close()
		return nil, &os.PathError{Op: "set up", Path: path, Err: err}
	}
	return p, nil
}

// makeRaw puts a terminal into raw mode, and reports whether the file is a terminal.
func makeRaw(fd int) (terminal bool, err error) {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EINVAL) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	t.Iflag, t.Oflag, t.Lflag = 0, 0, 0
	t.Cflag = t.Cflag&^(unix.CSIZE|unix.PARENB|unix.HUPCL) | unix.CS8 | unix.CREAD | unix.CLOCAL
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	return true, unix.IoctlSetTermios(fd, unix.TCSETS, t)
}

// NoHangup reports whether the end of a client cannot be detected. Package rpc uses it.
func (p *port) NoHangup() bool { return p.endless }

func newPort(from, to *os.File) (*port, error) {
	raw, err := from.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &port{from: from, to: to, raw: raw}, nil
}

// Read returns what a client sends, and io.EOF once when the client has gone. Without a client, it
// waits.
func (p *port) Read(b []byte) (n int, err error) {
	bad := p.raw.Read(func(fd uintptr) bool {
		for {
			n, err = unix.Read(int(fd), b)
			if !errors.Is(err, unix.EINTR) {
				break
			}
		}
		return !errors.Is(err, unix.EAGAIN) && (n != 0 || p.used)
	})
	switch {
	case bad != nil:
		return 0, bad
	case err != nil:
		return 0, &os.PathError{Op: "read", Path: p.from.Name(), Err: err}
	case n == 0:
		p.used = false
		return 0, io.EOF
	}
	p.used = true
	return n, nil
}

// Write blocks while the host does not read. Without a client, the data is lost.
func (p *port) Write(b []byte) (int, error) { return p.to.Write(b) }

// SetDeadline sets the deadline of reads and writes.
func (p *port) SetDeadline(at time.Time) error {
	if err := p.from.SetReadDeadline(at); err != nil {
		return err
	}
	return p.to.SetWriteDeadline(at)
}

// Close closes the port.
func (p *port) Close() error {
	err := p.from.Close()
	if p.to != p.from {
		_ = p.to.Close()
	}
	return err
}
