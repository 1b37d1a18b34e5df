package agent

import (
	"context"
	"time"

	"orrery/internal/guest/boot"
)

// joining is how long an interface may take to come that the host has plugged in: its driver may
// have to be found first.
const joining = time.Minute

// Join makes interfaces that have come while the machine runs what they are to be. After that it is
// as if they had been there when it booted.
func (place) Join(ctx context.Context, nics []boot.NIC) error {
	ctx, cancel := context.WithTimeout(ctx, joining)
	defer cancel()
	return boot.Join(ctx, nics)
}
