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

// Of returns the agent of a running machine.
func (a *Agents) Of(ctx context.Context, ref engine.Ref) (*rpc.Client, error) {
	if !a.Nodes.Running(ref) {
		return nil, engine.NotRunning(ref)
	}
	return a.reach(ctx, Of(a.Nodes, ref))
}

// Runner runs commands in a running machine.
func (a *Agents) Runner(ref engine.Ref) host.Runner {
	return By(func(ctx context.Context) (host.Runner, error) {
		c, err := a.Of(ctx, ref)
		if err != nil {
			return nil, err
		}
		return c.Runner(ref.Name), nil
	})
}

// reach returns the agent of a machine, which may still be booting.
func (a *Agents) reach(ctx context.Context, m Machine) (*rpc.Client, error) {
	return a.to.To(ctx, m.Ref, func(ctx context.Context) (*rpc.Client, error) { return rpc.Enter(ctx, m.Run) })
}

// Leave closes the connection to a machine.
func (a *Agents) Leave(ref engine.Ref) { a.to.Leave(ref) }
