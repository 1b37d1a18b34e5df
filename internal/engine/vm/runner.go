package vm

import (
	"context"
	"net"

	"orrery/internal/host"
)

// GuestRunner runs commands in a guest. It connects for each command.
type GuestRunner func(ctx context.Context) (host.Runner, error)

var _ host.Runner = GuestRunner(nil)

// Run runs a command in the guest.
func (b GuestRunner) Run(ctx context.Context, c host.Command) error {
	in, err := b(ctx)
	if err != nil {
		return err
	}
	return in.Run(ctx, c)
}

// Put writes files in the guest.
func (b GuestRunner) Put(ctx context.Context, files ...host.File) error {
	in, err := b(ctx)
	if err != nil {
		return err
	}
	return in.Put(ctx, files...)
}

// Dial connects to an address from inside the guest.
func (b GuestRunner) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	in, err := b(ctx)
	if err != nil {
		return nil, err
	}
	return in.Dial(ctx, network, address)
}
