package kvm

import (
	"context"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/engine/vm"
	"orrery/internal/host"
	"orrery/internal/problem"
)

// guests are the ways into the guests of machines: an agent, or the SSH server of one that boots a
// disk of others.
type guests struct {
	nodes  *nodedir.Nodes
	agents vm.Agents
	logins logins
}

func guestsOf(nodes *nodedir.Nodes) *guests {
	return &guests{nodes: nodes, agents: vm.Agents{Nodes: nodes}, logins: logins{nodes: nodes}}
}

// Runner runs commands in a running node.
func (g *guests) Runner(ref engine.Ref) host.Runner {
	m := machineOf(g.nodes, ref)
	if m.HasDisk() {
		return vm.By(func(ctx context.Context) (host.Runner, error) { return g.logins.visit(ctx, m) })
	}
	return vm.By(func(context.Context) (host.Runner, error) {
		if m.rootless() {
			return nil, problem.New(problem.Failed, "node %s: virtiofsd, which shows it its root, has ended", ref.Name).
				At(ref.Site).Try("orrery restart %s", ref.Name)
		}
		return g.agents.Runner(ref), nil
	})
}

// leave ends the connections to a machine.
func (g *guests) leave(ref engine.Ref) {
	g.agents.Leave(ref)
	g.logins.to.Leave(ref)
}

// await waits until the guest of a machine that was started is up.
func (g *guests) await(ctx context.Context, m machine, accel string) error {
	if m.HasDisk() {
		return g.logins.await(ctx, m, accel)
	}
	return g.agents.Await(ctx, m.Machine, bootTimeouts(accel), m.awaitOff)
}

// askOff asks a guest to shut down, for as long as its machine runs. It does not matter whether an
// agent answers.
func (g *guests) askOff(ctx context.Context, m machine) error {
	if m.HasDisk() {
		return pressButton(ctx, m)
	}
	_ = g.agents.PowerOff(ctx, m.Ref, m.awaitOff)
	return ctx.Err()
}

// pressing is how often the power button of a guest is pressed that does not switch itself off: one
// that boots does not feel it.
const pressing = 10 * time.Second

// pressButton presses the power button until the machine is off.
func pressButton(ctx context.Context, m machine) error {
	off := make(chan error, 1)
	go func() { off <- m.awaitOff(ctx) }()
	for {
		_ = m.order(ctx, "system_powerdown")
		select {
		case err := <-off:
			return err
		case <-time.After(pressing):
		}
	}
}

// unburdening is how long a guest may take to forget.
const unburdening = 20 * time.Second

// unburden lets a guest forget which files it has seen and does not use. Those that the host has
// replaced since, such as what it shows in /etc/orrery, have no path any more by which a second
// virtiofsd could find them. A guest that does not is not moved if it has any.
func (g *guests) unburden(ctx context.Context, m machine) {
	ctx, cancel := context.WithTimeout(ctx, unburdening)
	defer cancel()
	if agent, err := g.agents.Of(ctx, m.Ref); err == nil {
		_ = agent.Forget(ctx, nil)
	}
}
