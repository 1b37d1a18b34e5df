package host

import (
	"errors"
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// A little is enough for most of what passes between programs; the pieces in which it passes, and
// the pipe itself, grow only where much does. The kernel bounds how much a user who is not root has
// in pipes.
const (
	little = 32 << 10
	much   = 512 << 10
	wide   = 2 * much // of a pipe: so that one may write the next piece while the other reads the last
)

// pour carries a stream from one place to another; either may be a pipe.
func pour(to io.Writer, from io.Reader) error {
	piece := make([]byte, little)
	for {
		n, err := from.Read(piece)
		if n > 0 {
			if _, err := to.Write(piece[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case n == little:
			Widen(to)
			Widen(from)
		}
		if n == len(piece) && n < much {
			piece = make([]byte, 2*n)
		}
	}
}

// Widen enlarges the buffer of a pipe, as far as the kernel allows. It leaves anything that is not
// a pipe as it is.
func Widen(pipe any) {
	file, ok := pipe.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := file.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			if capacity, err := unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0); err == nil && capacity < wide {
				_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, wide)
			}
		})
	}
}
