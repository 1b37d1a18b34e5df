package agent

import (
	"context"
	"time"

	"orrery/internal/guest/boot"
)

// joinTimeout limits how long a hot-plugged interface may take to appear. Its driver may have to be
// loaded first.
const joinTimeout = time.Minute

// ConfigureNICs configures interfaces that were added while the machine runs, as if they had existed when it
// booted.
func (guest) ConfigureNICs(ctx context.Context, nics []boot.NIC) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	return boot.Join(ctx, nics)
}
