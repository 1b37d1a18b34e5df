package kvm

import (
	"context"
	"net"

	"orrery/internal/engine"
	"orrery/internal/host"
)

// runner runs commands in a node by the agent of its guest.
type runner struct {
	e   *Engine
	ref engine.Ref
}

var _ host.Runner = runner{}

// Run runs a command in the node.
func (r runner) Run(ctx context.Context, c host.Command) error {
	in, err := r.inside(ctx)
	if err != nil {
		return err
	}
	return in.Run(ctx, c)
}

// Put writes files of the node.
func (r runner) Put(ctx context.Context, files ...host.File) error {
	in, err := r.inside(ctx)
	if err != nil {
		return err
	}
	return in.Put(ctx, files...)
}

// Dial connects from the node.
func (r runner) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	in, err := r.inside(ctx)
	if err != nil {
		return nil, err
	}
	return in.Dial(ctx, network, address)
}

func (r runner) inside(ctx context.Context) (host.Runner, error) {
	c, err := r.e.client(ctx, r.ref)
	if err != nil {
		return nil, err
	}
	return c.Runner(r.ref.Name), nil
}
