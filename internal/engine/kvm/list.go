package kvm

import (
	"context"
	"os"
	"slices"

	"orrery/internal/engine"
	"orrery/internal/engine/kvm/qmp"
	"orrery/internal/network/ends"
	"orrery/internal/observe"
)

// List returns the nodes of a site. It starts no process and asks no guest, so it costs little more
// than reading the nodes' files. It only asks QEMU whether the machine is stopped.
func (e *Engine) List(_ context.Context, site string) ([]observe.Node, error) {
	return e.Observe(site, e.observeNode)
}

// ReadState sets the state of a node.
func (e *Engine) ReadState(n *observe.Node) {
	m := e.machine(engine.RefOf(&n.Node))
	pid, shared := m.programs()
	if pid == 0 {
		n.Doubt = nil // a stopped machine has no interfaces, and starts with all of them
		return
	}
	n.State, n.Rootless = observe.Running, !shared && !m.HasDisk()
	if m.frozenOrHalted() {
		n.State = observe.Frozen
	}
	if n.State != observe.Running {
		return
	}
	switch m.runState(context.Background()) {
	case qmp.IOError:
		n.State, n.Starved = observe.Frozen, true
	case qmp.Panicked:
		n.State, n.Panic = observe.Frozen, serial{m}.panicOutput()
	}
}

// observeNode sets the state of a node and, if it runs, the actual state of its links and limits.
func (e *Engine) observeNode(n *observe.Node) {
	if e.ReadState(n); !n.Runs() {
		return
	}
	m := e.machine(engine.RefOf(&n.Node))
	_, err := os.Lstat(m.vhostFile())
	n.VHost = err == nil
	n.Outdated = outdated(m.processes())
	for i := range n.NICs {
		if slices.Contains(n.Doubt, n.NICs[i].Network) {
			continue
		}
		n.NICs[i].Bridge = ends.BridgeOfNIC(n.NICs[i], n.KindOf(n.NICs[i]))
		if n.NICs[i].Bridge == "" && !ends.Exists(n.NICs[i].HostIfName) {
			n.Unlinked = append(n.Unlinked, n.NICs[i].Network)
		}
	}
	if held, ok := m.Group().InForce(hostLimits(&n.Node, 1)); !ok {
		n.Limits.Cpus, n.Limits.Pin = held.Cpus, held.Pin // another process has changed the limits
	}
}
