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

// guests are the connections to guests: by the agent, or by the SSH server of a guest that boots a
// foreign disk.
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
		return vm.GuestRunner(func(ctx context.Context) (host.Runner, error) { return g.logins.connect(ctx, m) })
	}
	return vm.GuestRunner(func(context.Context) (host.Runner, error) {
		if m.rootless() {
			return nil, problem.New(problem.Failed, "node %s: virtiofsd, which serves its root, has exited", ref.Name).
				At(ref.Site).Try("orrery restart %s", ref.Name)
		}
		return g.agents.Runner(ref), nil
	})
}

// disconnect closes the connections to a machine.
func (g *guests) disconnect(ref engine.Ref) {
	g.agents.Disconnect(ref)
	g.logins.to.Disconnect(ref)
}

// await waits until the guest of a machine that was started is up.
func (g *guests) await(ctx context.Context, m machine, accel string) error {
	if m.HasDisk() {
		return g.logins.await(ctx, m, accel)
	}
	return g.agents.Await(ctx, m.Machine, bootTimeouts(accel), m.awaitOff)
}

// requestPowerOff asks a guest to shut down and waits while its machine runs. It ignores whether the agent
// answers.
func (g *guests) requestPowerOff(ctx context.Context, m machine) error {
	if m.HasDisk() {
		return pressButton(ctx, m)
	}
	_ = g.agents.PowerOff(ctx, m.Ref, m.awaitOff)
	return ctx.Err()
}

// pressInterval is the interval at which the power button of a guest is pressed, because a guest that is
// still booting ignores it.
const pressInterval = 10 * time.Second

// pressButton presses the power button until the machine is off.
func pressButton(ctx context.Context, m machine) error {
	off := make(chan error, 1)
	go func() { off <- m.awaitOff(ctx) }()
	for {
		_ = m.command(ctx, "system_powerdown")
		select {
		case err := <-off:
			return err
		case <-time.After(pressInterval):
		}
	}
}

// forgetTimeout limits how long unburden waits for the guest.
const forgetTimeout = 20 * time.Second

// forgetUnusedFiles makes a guest forget which unused files it has seen. Files that the host has replaced
// since, such as those in /etc/orrery, have no path any more by which a second virtiofsd could find
// them. If the guest still remembers one, its machine cannot be moved.
func (g *guests) forgetUnusedFiles(ctx context.Context, m machine) {
	ctx, cancel := context.WithTimeout(ctx, forgetTimeout)
	defer cancel()
	if agent, err := g.agents.Connect(ctx, m.Ref); err == nil {
		_ = agent.Unmount(ctx, nil)
	}
}
