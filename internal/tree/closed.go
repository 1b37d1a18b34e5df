package tree

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// closingTimeout is how long a file may stay open for writing in programs that are being started.
const closingTimeout = time.Second

// UntilClosed waits until nobody has a file open for writing, below an open directory or at a path
// (unix.AT_FDCWD). A program that another thread starts meanwhile has a copy of what was open for a
// moment longer, until it is executed; and what is open for writing cannot be run (ETXTBSY of
// execve(2)). A lease can be had as soon as there is no writer (fcntl(2), F_SETLEASE); a file
// system without leases is not waited for.
func UntilClosed(dir int, name string) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written to it
	for began := time.Now(); time.Since(began) < closingTimeout; time.Sleep(time.Millisecond) {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
		if err == nil {
			_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK) // closing it does so as well
		}
		if !errors.Is(err, unix.EAGAIN) {
			return
		}
	}
}
