package host

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Apart does some work on a thread that ends with it, and with the thread the namespaces that it
// has entered, and waits for it.
func Apart(work func() error) error {
	done := make(chan error, 1)
	OnOwnThread(func() { done <- work() })
	return <-done
}

// OnOwnThread is Apart for who does not wait for the work.
func OnOwnThread(work func()) {
	go func() {
		runtime.LockOSThread() // and never unlocked: the runtime ends the thread with the goroutine
		if unix.Gettid() != unix.Getpid() {
			work()
			return
		}
		// The first thread of a process never ends: it would keep the namespaces, and /proc/self would
		// show them. As long as it is held here, the work is done on another.
		done := make(chan struct{})
		OnOwnThread(func() {
			defer close(done)
			work()
		})
		<-done
		runtime.UnlockOSThread()
	}()
}
