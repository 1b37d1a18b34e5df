package agent

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A port is a virtio-serial port. It is one file for ever, on which clients come and go: while there is none, it gives 0 bytes, at once; and it
// may still give what the last one sent.
//
// The kernel wakes those who wait for a port whenever something has happened to it, and Go's poller asks it only then (EPOLLET): so nobody asks again and again,
// and no signal is needed.
type port struct {
	from, to *os.File // one and the same, but in tests
	raw      syscall.RawConn
	used     bool // since a client was last seen to go
}

func openPort(path string) (*port, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return newPort(f, f)
}

func newPort(from, to *os.File) (*port, error) {
	raw, err := from.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &port{from: from, to: to, raw: raw}, nil
}

// Read gives what a client sends, and io.EOF once when he goes. While there is none, it waits.
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

// Write waits while the host does not take what is written; without a client, nobody gets it.
func (p *port) Write(b []byte) (int, error) { return p.to.Write(b) }

// SetDeadline ends what reads or writes.
func (p *port) SetDeadline(at time.Time) error {
	if err := p.from.SetReadDeadline(at); err != nil {
		return err
	}
	return p.to.SetWriteDeadline(at)
}

// Close gives the port back.
func (p *port) Close() error {
	err := p.from.Close()
	if p.to != p.from {
		_ = p.to.Close()
	}
	return err
}
