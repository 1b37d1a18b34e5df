package cli

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// worthSplicing is the size from which on a file goes by splice.
const worthSplicing = 256 << 10

// splice lets the kernel carry so many bytes of a file into a pipe, so that they need not come here for that. It gives how many came, which are fewer
// if the file ends before; and errors.ErrUnsupported, with nothing carried, where the file system knows no such way.
func splice(ctx context.Context, to, file *os.File, bytes int64, moved func(int64)) (done int64, err error) {
	pipe, err := to.SyscallConn()
	if err != nil {
		return 0, err
	}
	for done < bytes {
		if ctx.Err() != nil {
			return done, context.Cause(ctx)
		}
		var n int
		var spliced error
		err := pipe.Write(func(fd uintptr) bool { // waits for room, and ends when the pipe is closed
			n, spliced = spliceOnce(int(fd), int(file.Fd()), int(min(bytes-done, piece)))
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
		done += int64(n)
		if moved != nil {
			moved(int64(n))
		}
	}
	return done, nil
}

func spliceOnce(pipe, file, most int) (n int, err error) {
	for {
		done, err := unix.Splice(file, nil, pipe, nil, most, unix.SPLICE_F_NONBLOCK|unix.SPLICE_F_MOVE)
		if !errors.Is(err, unix.EINTR) {
			return int(done), err
		}
	}
}
