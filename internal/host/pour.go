package host

import (
	"errors"
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// A small buffer is enough for most streams between programs. The buffer and the pipe itself grow
// only for long streams, because the kernel limits how much pipe memory a user other than root has.
const (
	minBufferBytes = 32 << 10
	maxBufferBytes = 512 << 10
	pipeBytes      = 2 * maxBufferBytes // of a pipe: one side can write the next piece while the other reads the last one
)

// copyStream copies a stream. Either side may be a pipe.
func copyStream(to io.Writer, from io.Reader) error {
	piece := make([]byte, minBufferBytes)
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
		case n == minBufferBytes:
			EnlargePipe(to)
			EnlargePipe(from)
		}
		if n == len(piece) && n < maxBufferBytes {
			piece = make([]byte, 2*n)
		}
	}
}

// EnlargePipe enlarges the buffer of a pipe, as far as the kernel allows. It ignores anything that is not
// a pipe.
func EnlargePipe(pipe any) {
	file, ok := pipe.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := file.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			if capacity, err := unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0); err == nil && capacity < pipeBytes {
				_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeBytes)
			}
		})
	}
}
