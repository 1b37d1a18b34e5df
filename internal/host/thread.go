package host

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// OnLockedThread calls work on a thread of its own and waits for it. The thread ends with the work, and so
// do the namespaces that it has entered.
func OnLockedThread(work func() error) error {
	done := make(chan error, 1)
	GoOnLockedThread(func() { done <- work() })
	return <-done
}

// GoOnLockedThread is like OnLockedThread, but does not wait for the work.
func GoOnLockedThread(work func()) {
	go func() {
		runtime.LockOSThread() // never unlocked: the runtime ends the thread with the goroutine
		if unix.Gettid() != unix.Getpid() {
			work()
			return
		}
		// The first thread of a process never ends. It would keep the namespaces, and /proc/self
		// would show them. So this goroutine occupies it while the work runs on another thread.
		done := make(chan struct{})
		GoOnLockedThread(func() {
			defer close(done)
			work()
		})
		<-done
		runtime.UnlockOSThread()
	}()
}
