package host

import (
	"errors"
	"fmt"
	"math"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// CloseInheritedOnExec prevents programs that this process starts from inheriting the file descriptors
// that it inherited itself. A shell leaves descriptors open by `exec 7<FILE`. A program in a node
// could then read the file, or reach the whole host through a directory. Descriptors that a program
// needs are passed explicitly (exec.Cmd.ExtraFiles). main calls CloseInheritedOnExec before it starts
// anything.
func CloseInheritedOnExec() error {
	return os.NewSyscallError("close_range", unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC))
}

// NewSessionKeyring starts an empty session keyring for the calling thread and its children (keyctl(2),
// KEYCTL_JOIN_SESSION_KEYRING). A process that possesses the caller's keyring may read, change and
// revoke the keys in it, such as Kerberos tickets, in any user namespace. So everything that runs
// for a node, a build or a hook is started by a thread that has called this and then ends (Apart).
// Orrery itself keeps the caller's keyring: the site directory may be on a file system, such as
// AFS, that needs a key in it.
func NewSessionKeyring() error {
	// The keyring has no name, so that no other process can join it.
	_, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // there are no keys here, nor in nodes
		return nil
	}
	return os.NewSyscallError("keyctl", err)
}

// DetachFromCaller drops the caller's descriptors and keys for the calling thread and its children, and
// resets their scheduling. A process that is started by this thread, such as a container, outlives
// the call. If the caller was started under chrt(1) or taskset(1), a node would otherwise stay in a
// real-time class, or on one processor, for its whole life.
func DetachFromCaller() error {
	if err := CloseInheritedOnExec(); err != nil {
		return err
	}
	if err := NewSessionKeyring(); err != nil {
		return err
	}
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("0"), 0) // of this process: a caller may have raised it
	return resetScheduling(0)
}

// resetScheduling puts a thread, or the calling thread if thread is 0, into the ordinary scheduling
// class, with the default priority, on all processors.
func resetScheduling(thread int) error {
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

// ResetThread resets attributes of the calling thread, and of its children, that an unprivileged
// caller may have set and that survive exec(2). These are an idle scheduling class for processors
// or disks, a large timer slack, and a personality that changes the kernel version shown. It
// returns an error if an attribute cannot be reset. The thread must be locked
// (runtime.LockOSThread).
func ResetThread() error {
	if bits, err := unix.PrctlRetInt(unix.PR_GET_MDWE, 0, 0, 0, 0); err == nil && bits != 0 {
		return errors.New("programs started here could not create code at run time (PR_SET_MDWE)")
	}
	if err := resetScheduling(0); err != nil {
		return fmt.Errorf("scheduling class: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOPRIO_SET, ofProcess, 0, noPriority); errno != 0 {
		return fmt.Errorf("disk priority: %w", errno)
	}
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, usualSlack, 0, 0, 0); err != nil {
		return fmt.Errorf("timer slack: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_PERSONALITY, linux, 0, 0); errno != 0 {
		return fmt.Errorf("personality: %w", errno)
	}
	return nil
}

const (
	ofProcess  = 1      // IOPRIO_WHO_PROCESS: with 0, the calling thread
	noPriority = 0      // IOPRIO_CLASS_NONE: the priority follows the scheduling class
	usualSlack = 50_000 // ns, the value of the first process
	linux      = 0      // PER_LINUX
)

// SameFile reports whether two open files are the same file.
func SameFile(a, b *os.File) bool {
	one, err := a.Stat()
	two, err2 := b.Stat()
	return err == nil && err2 == nil && os.SameFile(one, two)
}

// Killable reports whether a process that reads or writes a stream can be killed at once, whatever
// is at the other end. This holds for a terminal, a pipe, a socket and /dev/null. A regular file
// may be on a file system that a user's program serves, and that program may never answer.
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
