package host

import (
	"errors"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// ShutInherited keeps the descriptors that this process was started with from all programs that it starts itself. A shell
// leaves them open by `exec 7<FILE`, and a program in a node could then read the file, or reach the whole host through a
// directory. What a program is to have open, it is given (exec.Cmd.ExtraFiles). main calls it before anything is started.
func ShutInherited() error {
	return os.NewSyscallError("close_range", unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC))
}

// OwnKeyring gives the calling thread, and what it starts from now on, an empty session keyring (keyctl(2),
// KEYCTL_JOIN_SESSION_KEYRING). Whoever possesses the caller's may read, change and revoke the keys in it, such as
// Kerberos tickets, in whatever user namespace it is. So everything that runs for a node, a build or a hook is started by a
// thread that has called this, and that ends with the start (Apart). Orrery itself keeps the caller's keyring: the site
// directory may be on a file system, such as AFS, that asks for a key in it.
func OwnKeyring() error {
	// Without a name, so that nobody else can join it.
	_, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // no keys here, for nodes neither
		return nil
	}
	return os.NewSyscallError("keyctl", err)
}

// LeaveCaller gives the calling thread, and what it starts from now on, nothing of the caller's: no descriptors, no keys,
// and an ordinary place among all threads of the host. What it starts, such as a container, outlives the call, and a node
// that began under chrt(1) or taskset(1) would be in a real-time class, or on one processor, for all its life.
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

// ownScheduling puts a thread, or the calling one if it is 0, into the ordinary class, with the ordinary priority, on all
// processors.
func ownScheduling(thread int) error {
	if err := unix.SchedSetAttr(thread, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}, 0); err != nil {
		return os.NewSyscallError("sched_setattr", err)
	}
	var everywhere unix.CPUSet
	for i := range 1024 {
		everywhere.Set(i)
	}
	return os.NewSyscallError("sched_setaffinity", unix.SchedSetaffinity(thread, &everywhere))
}
