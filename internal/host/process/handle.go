package process

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// A Handle is a process held by a pidfd (pidfd_open(2)). It still refers to the same process when the
// id is reused. The caller must check after Open that it is the intended process.
type Handle struct{ fd int }

// Open holds a process. It returns an error if the process has ended.
func Open(pid int) (Handle, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	return Handle{fd}, err
}

// Close releases the process.
func (h Handle) Close() { unix.Close(h.fd) } //nolint:errcheck // nothing was written to it

// Send sends a signal to the process. It ignores a process that has ended.
func (h Handle) Send(s unix.Signal) error {
	if err := unix.PidfdSendSignal(h.fd, s, nil, 0); !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}

// RetryUntilEnded calls try every 50 ms until the process has ended.
func (h Handle) RetryUntilEnded(ctx context.Context, try func(n int) error) error {
	for n := 0; ; n++ {
		if err := try(n); err != nil {
			return err
		}
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(h.fd), Events: unix.POLLIN}}, 50)
		if ready > 0 {
			return nil
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// CopyFD returns a copy of a file that the process has open, by its descriptor in that process
// (pidfd_getfd(2)).
func (h Handle) CopyFD(fd int) (*os.File, error) {
	its, err := unix.PidfdGetfd(h.fd, fd, 0)
	if err != nil {
		return nil, os.NewSyscallError("pidfd_getfd", err)
	}
	return os.NewFile(uintptr(its), "of another process"), nil
}
