package nodecopy

import (
	"context"
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// worthSplicing is the size from which on a file goes by splice.
const worthSplicing = 256 << 10

// A splice lets the kernel carry bytes between a pipe and a file, so that they need not come here for that.
type splice struct {
	wait func(try func(pipe uintptr) (done bool)) error // until the pipe is ready
	once func(pipe, most int) (int64, error)
}

func spliceInto(pipe, from *os.File) (*splice, error) {
	c, err := pipe.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &splice{c.Write, func(pipe, most int) (int64, error) { return spliceOnce(int(from.Fd()), pipe, most) }}, nil
}

func spliceFrom(pipe syscall.Conn, to *os.File) (*splice, error) {
	c, err := pipe.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &splice{c.Read, func(pipe, most int) (int64, error) { return spliceOnce(pipe, int(to.Fd()), most) }}, nil
}

// carry carries so many bytes. It returns how many came, which are fewer if what they come from ends
// before; and errors.ErrUnsupported, with nothing carried, where the file system knows no such way.
func (s *splice) carry(ctx context.Context, bytes int64, moved func(int64)) (done int64, err error) {
	for done < bytes {
		if ctx.Err() != nil {
			return done, context.Cause(ctx)
		}
		var n int64
		var spliced error
		err := s.wait(func(pipe uintptr) bool { // ends when the pipe is closed
			n, spliced = s.once(int(pipe), int(min(bytes-done, piece)))
			return !errors.Is(spliced, unix.EAGAIN)
		})
		switch {
		case err != nil:
			return done, err
		case done == 0 && (errors.Is(spliced, unix.EINVAL) || errors.Is(spliced, unix.ENOSYS)):
			return 0, errors.ErrUnsupported
		case spliced != nil:
			return done, os.NewSyscallError("splice", spliced)
		case n == 0:
			return done, nil
		}
		done += n
		if moved != nil {
			moved(n)
		}
	}
	return done, nil
}

func spliceOnce(from, to, most int) (int64, error) {
	for {
		n, err := unix.Splice(from, nil, to, nil, most, unix.SPLICE_F_NONBLOCK|unix.SPLICE_F_MOVE)
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
