package network

import (
	"context"

	"orrery/internal/host"
	"orrery/internal/network/passthrough"
)

// PreparePassthrough prepares an interface of the host for a node, given as SITE/ID, to take. It refuses
// an interface that the host itself needs, since this would cut the host off.
func PreparePassthrough(ctx context.Context, name, node string) error {
	unlock, err := lock(ctx, host.Exclusive)
	if err != nil {
		return err
	}
	defer unlock()
	return passthrough.Prepare(name, node)
}

// RestorePassthrough restores the name and all settings of an interface that a node took, if it is on the
// host.
func RestorePassthrough(ctx context.Context, name, node string) error {
	unlock, err := lock(ctx, host.Exclusive)
	if err != nil {
		return err
	}
	defer unlock()
	return passthrough.Restore(name, node)
}
