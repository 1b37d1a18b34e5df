package host

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// OwnThread frees the calling thread, and what it starts, of what a caller who is not root may have given it and keeps beyond an exec(2): a
// scheduling class that runs only when nobody else does, for processors and disks, timers that go off when they like, and words that
// the kernel uses for its version. What cannot be taken back is an error. The thread must be locked (runtime.LockOSThread).
func OwnThread() error {
	if bits, err := unix.PrctlRetInt(unix.PR_GET_MDWE, 0, 0, 0, 0); err == nil && bits != 0 {
		return errors.New("no program that is started here could make code at run time (PR_SET_MDWE)")
	}
	ordinary := &unix.SchedAttr{Policy: unix.SCHED_NORMAL}
	if err := unix.SchedSetAttr(0, ordinary, 0); err != nil {
		return fmt.Errorf("scheduling class: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOPRIO_SET, ofProcess, 0, noPriority); errno != 0 {
		return fmt.Errorf("priority for disks: %w", errno)
	}
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, usualSlack, 0, 0, 0); err != nil {
		return fmt.Errorf("slack of timers: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_PERSONALITY, linux, 0, 0); errno != 0 {
		return fmt.Errorf("personality: %w", errno)
	}
	return nil
}

const (
	ofProcess  = 1      // IOPRIO_WHO_PROCESS: with 0, the calling thread
	noPriority = 0      // IOPRIO_CLASS_NONE: that of the scheduling class
	usualSlack = 50_000 // ns, what the first process has
	linux      = 0      // PER_LINUX
)

// SameFile reports whether two open files are one.
func SameFile(a, b *os.File) bool {
	one, err := a.Stat()
	two, err2 := b.Stat()
	return err == nil && err2 == nil && os.SameFile(one, two)
}

// Killable reports whether a process ends when it is killed while it reads or writes a stream, whoever has the other end: a terminal, a
// pipe, a socket, or /dev/null. A file may be one of a file system that its user serves, which answers when he likes.
func Killable(stream *os.File) bool {
	info, err := stream.Stat()
	if err != nil {
		return false
	}
	switch info.Mode() & os.ModeType {
	case os.ModeNamedPipe, os.ModeSocket:
		return true
	case os.ModeDevice | os.ModeCharDevice:
		st, ok := info.Sys().(*syscall.Stat_t)
		return IsTerminal(stream) || ok && st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == unix.Mkdev(1, 3)
	}
	return false
}
