package host

import (
	"context"
	"time"
)

// Pause waits for a while. If ctx ends before, the error is why.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
