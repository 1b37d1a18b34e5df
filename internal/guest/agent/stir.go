package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
)

// WakeFileServer looks up a file that does not exist, which forces a request to the host's file server.
func (guest) WakeFileServer(ctx context.Context) error {
	done := make(chan error, 1)
	go func() {
		_, err := os.Lstat("/.orrery-" + rand.Text())
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done(): // the file server may never answer
		return context.Cause(ctx)
	}
}
