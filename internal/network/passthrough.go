package network

import (
	"context"

	"orrery/internal/host"
	"orrery/internal/network/passthrough"
)

// PassThrough prepares an interface of the host for being taken by a node, which is given as
// SITE/ID. It refuses one that the host itself needs: it must not cut the host off.
func PassThrough(ctx context.Context, name, node string) error {
	unlock, err := lock(ctx, host.Alone)
	if err != nil {
		return err
	}
	defer unlock()
	return passthrough.Take(name, node)
}

// Reclaim restores the name and all settings of an interface that a node took, if it is on the host.
func Reclaim(ctx context.Context, name, node string) error {
	unlock, err := lock(ctx, host.Alone)
	if err != nil {
		return err
	}
	defer unlock()
	return passthrough.Reclaim(name, node)
}
