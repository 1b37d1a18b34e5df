package process

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// A Held is a process that is held by a file descriptor of it (pidfd_open(2)): it stays that
// process, whoever is given its number when it has ended. Whether it is the one that was meant, is
// to be asked when it is held.
type Held struct{ fd int }

// Hold holds a process; an error says that it has ended.
func Hold(pid int) (Held, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	return Held{fd}, err
}

// Close lets go of it.
func (h Held) Close() { unix.Close(h.fd) } //nolint:errcheck // nothing was written to it

// Send sends it a signal. One that has ended is no error.
func (h Held) Send(s unix.Signal) error {
	if err := unix.PidfdSendSignal(h.fd, s, nil, 0); !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}

// UntilEnded tries something every 50 ms until it has ended.
func (h Held) UntilEnded(ctx context.Context, try func(n int) error) error {
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

// Take returns a copy of a file that the process has open, by its descriptor there (pidfd_getfd(2)).
func (h Held) Take(fd int) (*os.File, error) {
	its, err := unix.PidfdGetfd(h.fd, fd, 0)
	if err != nil {
		return nil, os.NewSyscallError("pidfd_getfd", err)
	}
	return os.NewFile(uintptr(its), "of another process"), nil
}
