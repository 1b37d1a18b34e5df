package agents

import (
	"context"
	"net"

	"orrery/internal/host"
	"orrery/internal/wire"
)

// A Runner runs commands in a node by the agent of its guest.
type Runner struct {
	Name  string // of the node
	Agent func(ctx context.Context) (*wire.Client, error)
}

var _ host.Runner = Runner{}

// Run runs a command in the node.
func (r Runner) Run(ctx context.Context, c host.Command) error {
	in, err := r.inside(ctx)
	if err != nil {
		return err
	}
	return in.Run(ctx, c)
}

// Put writes files of the node.
func (r Runner) Put(ctx context.Context, files ...host.File) error {
	in, err := r.inside(ctx)
	if err != nil {
		return err
	}
	return in.Put(ctx, files...)
}

// Dial connects from the node.
func (r Runner) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	in, err := r.inside(ctx)
	if err != nil {
		return nil, err
	}
	return in.Dial(ctx, network, address)
}

func (r Runner) inside(ctx context.Context) (host.Runner, error) {
	c, err := r.Agent(ctx)
	if err != nil {
		return nil, err
	}
	return c.Runner(r.Name), nil
}
