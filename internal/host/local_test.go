package host

import (
	"context"
	"testing"
)

// A command dies with the program, but not with a thread of it.
func TestExecOutlivesThreads(t *testing.T) {
	ended := make(chan error)
	for range 8 {
		go func() { ended <- Local{}.Run(context.Background(), Command{Args: []string{"sleep", "0.3"}}) }()
	}
	for range 8 {
		for range 64 {
			done := make(chan bool)
			OnOwnThread(func() { close(done) })
			<-done
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
