package engine

import (
	"context"
	"fmt"
	"time"
)

// cleanupTimeout bounds how long an engine waits for other runs on the host, such as for the lock
// of its networks.
const cleanupTimeout = time.Minute

// Cleanup returns a context for removing what a node had while it ran. It does not end with ctx.
// The deadline of Stop is the time that the guest has to shut down, and has often passed when the
// engine begins to clean up.
func Cleanup(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.WithoutCancel(ctx), cleanupTimeout,
		fmt.Errorf("not done within %v", cleanupTimeout))
}
