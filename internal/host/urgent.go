package host

import (
	"fmt"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// realtime is above all ordinary processes, and below the kernel's own threads (sched(7)).
const realtime = 10

// Urgently does some work in one go for which others wait, however busy the processors are: on a
// thread of its own with real-time priority, with what is in memory locked there, and no garbage
// collected. All that can be prepared has been; what remains are a few system calls. Where the host
// does not permit that, why says so, and the work is done all the same, as well as it can be.
func Urgently(work func()) (why error) {
	// No memory is fetched for it, only none is taken away: what the work needs has just been used.
	locked := unix.Mlockall(unix.MCL_CURRENT | unix.MCL_ONFAULT)
	if locked == nil {
		defer unix.Munlockall() //nolint:errcheck // it goes with the process
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	return Apart(func() error { // on a thread that ends with the work, and its priority with it
		why := hurry()
		if why == nil && locked != nil {
			why = fmt.Errorf("memory is not locked: %w", locked)
		}
		work()
		return why
	})
}

// hurry raises this thread to real-time priority or, if that fails, to the highest ordinary one. No process
// that it starts inherits it.
func hurry() error {
	err := unix.SchedSetAttr(0, &unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: realtime,
		Flags: unix.SCHED_FLAG_RESET_ON_FORK}, 0)
	if err == nil {
		return nil
	}
	if nice := unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -20); nice != nil {
		return fmt.Errorf("neither real-time priority nor a higher one: %w", nice)
	}
	return fmt.Errorf("no real-time priority: %w", err)
}
