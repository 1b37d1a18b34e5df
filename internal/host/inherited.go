package host

import (
	"errors"
	"fmt"
	"math"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ShutInherited keeps the descriptors that this process was started with from all programs that it
// starts itself. A shell leaves them open by `exec 7<FILE`, and a program in a node could then read
// the file, or reach the whole host through a directory. What a program is to have open, it is
// given (exec.Cmd.ExtraFiles). main calls it before anything is started.
func ShutInherited() error {
	return os.NewSyscallError("close_range", unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC))
}

// OwnKeyring starts an empty session keyring for the calling thread, and what it starts from now on
// (keyctl(2), KEYCTL_JOIN_SESSION_KEYRING). Whoever possesses the caller's may read, change and revoke the
// keys in it, such as Kerberos tickets, in whatever user namespace it is. So everything that runs for a node,
// a build or a hook is started by a thread that has called this, and that ends with the start (Apart). Orrery
// itself keeps the caller's keyring: the site directory may be on a file system, such as AFS, that asks for a
// key in it.
func OwnKeyring() error {
	// Without a name, so that nobody else can join it.
	_, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // no keys here, for nodes neither
		return nil
	}
	return os.NewSyscallError("keyctl", err)
}

// LeaveCaller drops the caller's descriptors and keys for the calling thread, and for what it starts from now
// on, and moves them to an ordinary place among all threads of the host. What it starts, such as a container,
// outlives the call, and a node that began under chrt(1) or taskset(1) would be in a real-time class, or on
// one processor, for all its life.
func LeaveCaller() error {
	if err := ShutInherited(); err != nil {
		return err
	}
	if err := OwnKeyring(); err != nil {
		return err
	}
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("0"), 0) // of this process: a caller can have raised it
	return ownScheduling(0)
}

// ownScheduling puts a thread, or the calling one if it is 0, into the ordinary class, with the
// ordinary priority, on all processors.
func ownScheduling(thread int) error {
	if err := unix.SchedSetAttr(thread, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL},
		0); err != nil {
		return os.NewSyscallError("sched_setattr", err)
	}
	var everywhere unix.CPUSet
	for i := range 1024 {
		everywhere.Set(i)
	}
	return os.NewSyscallError("sched_setaffinity", unix.SchedSetaffinity(thread, &everywhere))
}

// OwnThread frees the calling thread, and what it starts, of what a caller who is not root may have
// given it and keeps beyond an exec(2): a scheduling class that runs only when nobody else does,
// for processors and disks, timers that go off when they like, and words that the kernel uses for
// its version. What cannot be taken back is an error. The thread must be locked
// (runtime.LockOSThread).
func OwnThread() error {
	if bits, err := unix.PrctlRetInt(unix.PR_GET_MDWE, 0, 0, 0, 0); err == nil && bits != 0 {
		return errors.New("no program that is started here could make code at run time (PR_SET_MDWE)")
	}
	if err := ownScheduling(0); err != nil {
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

// Killable reports whether a process ends when it is killed while it reads or writes a stream,
// whoever has the other end: a terminal, a pipe, a socket, or /dev/null. A file may be one of a
// file system that its user serves, which answers when he likes.
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
