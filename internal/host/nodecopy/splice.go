package nodecopy

import (
	"context"
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// minSpliceBytes is the minimum size of a file for splice.
const minSpliceBytes = 256 << 10

// A splice moves bytes between a pipe and a file within the kernel, without copying them through
// this process.
type splice struct {
	wait func(try func(pipe uintptr) (done bool)) error // calls try when the pipe is ready, until done
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

// move moves the given number of bytes, and returns how many it moved: fewer if the source ends
// early. It returns errors.ErrUnsupported, with nothing moved, if the file system does not support
// splice.
func (s *splice) move(ctx context.Context, bytes int64, moved func(int64)) (done int64, err error) {
	for done < bytes {
		if ctx.Err() != nil {
			return done, context.Cause(ctx)
		}
		var n int64
		var spliced error
		err := s.wait(func(pipe uintptr) bool { // ends when the pipe is closed
			n, spliced = s.once(int(pipe), int(min(bytes-done, readSize)))
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
