package need

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Linear fails the test if something takes much more than four times as long for four times the
// size: a quadratic algorithm takes sixteen times as long. Prepare returns what to measure, for a
// size. Only the processor time of the calling thread counts, so a busy machine changes nothing.
func Linear(t *testing.T, size int, prepare func(size int) (do func())) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const runs = 3 // the shortest counts, because the thread may help the garbage collector
	least := func(size int) time.Duration {
		do, least := prepare(size), time.Hour
		for range runs {
			before := threadTime(t)
			do()
			least = min(least, threadTime(t)-before)
		}
		return least
	}
	few, many := least(size), least(4*size)
	t.Logf("%v for %d, %v for %d", few, size, many, 4*size)
	if many > 10*max(few, time.Millisecond) {
		t.Errorf("it takes %v for a size of %d, and %v for %d", few, size, many, 4*size)
	}
}

// threadTime returns the processor time that the calling thread has used.
func threadTime(t *testing.T) time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
