package host

import (
	"fmt"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// realtimePriority is a priority above all ordinary processes, and below the kernel's own threads
// (sched(7)).
const realtimePriority = 10

// WithRealtimePriority calls work without interruption, even if the processors are busy. It is for work
// for which other processes wait. It uses a thread of its own with real-time priority, locks memory,
// and stops the garbage collector. The caller should prepare all that it can, so that only a few
// system calls remain. If the host does not permit this, the work is done at a lower priority, and why
// is the reason.
func WithRealtimePriority(work func()) (why error) {
	// This loads no memory, it only keeps what is there: the work uses memory that was just used.
	locked := unix.Mlockall(unix.MCL_CURRENT | unix.MCL_ONFAULT)
	if locked == nil {
		defer unix.Munlockall() //nolint:errcheck // it goes with the process
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	return OnLockedThread(func() error { // on a thread that ends with the work, and its priority with it
		why := raisePriority()
		if why == nil && locked != nil {
			why = fmt.Errorf("memory could not be locked: %w", locked)
		}
		work()
		return why
	})
}

// raisePriority raises this thread to real-time priority or, if that fails, to the highest ordinary one.
// Its children do not inherit the priority.
func raisePriority() error {
	err := unix.SchedSetAttr(0, &unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: realtimePriority,
		Flags: unix.SCHED_FLAG_RESET_ON_FORK}, 0)
	if err == nil {
		return nil
	}
	if nice := unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -20); nice != nil {
		return fmt.Errorf("neither real-time nor higher priority is available: %w", nice)
	}
	return fmt.Errorf("real-time priority is not available: %w", err)
}
