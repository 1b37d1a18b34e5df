package host

import (
	"os"
	"runtime/debug"
	"testing"

	"golang.org/x/sys/unix"
)

// TestUrgently checks that the work is done whatever the host permits, and that all changes to the
// thread are reverted.
func TestUrgently(t *testing.T) {
	before := debug.SetGCPercent(77)
	defer debug.SetGCPercent(before)
	var policy, thread, percent int
	why := WithRealtimePriority(func() {
		if a, err := unix.SchedGetAttr(0, 0); err == nil {
			policy = int(a.Policy)
		}
		thread, percent = unix.Gettid(), debug.SetGCPercent(-1)
	})
	if thread == 0 {
		t.Fatal("it was not done")
	}
	if permitted := why == nil; permitted != (policy == unix.SCHED_FIFO) {
		t.Errorf("done with policy %d: %v", policy, why)
	}
	if percent != -1 {
		t.Errorf("garbage was collected at %d %%", percent)
	}
	if got := debug.SetGCPercent(77); got != 77 {
		t.Errorf("garbage is collected at %d %% afterwards", got)
	}
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		var tid int
		for _, digit := range task.Name() {
			tid = 10*tid + int(digit-'0')
		}
		if a, err := unix.SchedGetAttr(tid, 0); err == nil && tid != thread && a.Policy != unix.SCHED_NORMAL {
			t.Errorf("thread %d is left with policy %d", tid, a.Policy)
		}
	}
}

// TestHurryRefused checks that without real-time priority, the thread gets the highest ordinary
// priority, or an error if that is also refused.
func TestHurryRefused(t *testing.T) {
	done := make(chan struct{})
	GoOnLockedThread(func() {
		defer close(done)
		// Like a process without the capability CAP_SYS_NICE, which is dropped for this thread.
		head, data := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
		if err := unix.Capget(&head, &data[0]); err != nil {
			t.Error(err)
			return
		}
		data[0].Effective &^= 1 << unix.CAP_SYS_NICE
		if err := unix.Capset(&head, &data[0]); err != nil {
			t.Error(err)
			return
		}
		if err := raisePriority(); err == nil {
			t.Error("nothing was refused")
		}
	})
	<-done
}
