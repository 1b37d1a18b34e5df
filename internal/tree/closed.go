package tree

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// closingTimeout is how long WaitClosed waits for processes that have a file open for writing.
const closingTimeout = time.Second

// WaitClosed waits until no process has a file open for writing. The file is below an open
// directory, or at a path if dir is unix.AT_FDCWD. A process that another thread forks inherits the
// open file and keeps it until execve. A file that is open for writing cannot be executed (ETXTBSY
// of execve(2)). The kernel grants a lease as soon as there is no writer (fcntl(2), F_SETLEASE). If
// the file system has no leases, WaitClosed does not wait.
func WaitClosed(dir int, name string) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written to it
	for began := time.Now(); time.Since(began) < closingTimeout; time.Sleep(time.Millisecond) {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
		if err == nil {
			// closing the file releases the lease as well
			_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
		}
		if !errors.Is(err, unix.EAGAIN) {
			return
		}
	}
}
