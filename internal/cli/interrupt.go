package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// forceDelay is how long after a first Ctrl-C another one is ignored, because timeout(1), for
// instance, sends each signal twice.
var forceDelay = 2 * time.Second // variable, so that tests can change it

// interruptible returns a context that ends with Ctrl-C or SIGTERM. A second signal ends the
// program at once, like a kill, whatever it is doing. That is needed because undoing a run ignores
// the context, and may wait for a host that never answers.
func interruptible() (ctx context.Context, stop func()) {
	ctx, stop = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() { time.AfterFunc(forceDelay, stop) })
	return ctx, stop
}
