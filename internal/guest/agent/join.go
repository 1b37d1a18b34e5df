package agent

import (
	"context"
	"time"

	"orrery/internal/guest/boot"
)

// joining limits how long a hot-plugged interface may take to appear. Its driver may have to be
// loaded first.
const joining = time.Minute

// Join configures interfaces that were added while the machine runs, as if they had existed when it
// booted.
func (place) Join(ctx context.Context, nics []boot.NIC) error {
	ctx, cancel := context.WithTimeout(ctx, joining)
	defer cancel()
	return boot.Join(ctx, nics)
}
