package vm

import (
	"context"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/transport/rpc"
)

// Agents are the agents of an engine's guests.
type Agents struct {
	Nodes *nodedir.Nodes
	to    Connections[*rpc.Client]
}

// Connect returns the agent of a running machine.
func (a *Agents) Connect(ctx context.Context, ref engine.Ref) (*rpc.Client, error) {
	if !a.Nodes.Running(ref) {
		return nil, engine.NotRunning(ref)
	}
	return a.connect(ctx, Of(a.Nodes, ref))
}

// Runner runs commands in a running machine.
func (a *Agents) Runner(ref engine.Ref) host.Runner {
	return GuestRunner(func(ctx context.Context) (host.Runner, error) {
		c, err := a.Connect(ctx, ref)
		if err != nil {
			return nil, err
		}
		return c.Runner(ref.Name), nil
	})
}

// connect returns the agent of a machine, which may still be booting.
func (a *Agents) connect(ctx context.Context, m Machine) (*rpc.Client, error) {
	return a.to.Get(ctx, m.Ref, func(ctx context.Context) (*rpc.Client, error) { return rpc.DialAgent(ctx, m.Run) })
}

// Disconnect closes the connection to a machine.
func (a *Agents) Disconnect(ref engine.Ref) { a.to.Disconnect(ref) }
