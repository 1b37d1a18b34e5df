package kvm

import (
	"context"
	"fmt"
	"time"
)

// cleanupTimeout limits how long QEMU may take to remove what a failed command has left. It is a
// variable, so that tests can change it.
var cleanupTimeout = 30 * time.Second

// cleanupContext returns a context for removing what a failed command has left in QEMU. It is valid even
// if ctx has ended, but only for cleanupTimeout: a QEMU that stands still never answers.
func cleanupContext(ctx context.Context) (context.Context, context.CancelFunc) {
	late := fmt.Errorf("no answer within %s", cleanupTimeout)
	return context.WithTimeoutCause(context.WithoutCancel(ctx), cleanupTimeout, late)
}
