package kvm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/kvm/argv"
	"orrery/internal/engine/kvm/qmp"
	"orrery/internal/engine/nodedir"
	"orrery/internal/engine/vm"
	"orrery/internal/guest/boot"
	"orrery/internal/host"
	"orrery/internal/network"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
)

// A rewiring is a change of a running machine's interfaces.
type rewiring struct {
	m      machine
	q      *qmp.Client
	r      *nodedir.Record
	guests *guests
}

// rewire removes interfaces from a running machine and adds others. Before each change, it records
// the affected networks as in doubt, with all links that may exist, until the change is complete.
// So the next run can remove whatever a killed run has left. The file that the guest reads when it
// boots never names an interface that the machine lacks, because then the guest would not boot.
func rewire(ctx context.Context, g *guests, old *nodedir.Record, node *spec.Node) error {
	change, live := old.NICChange(node, old.Doubt)
	m := machineOf(g.nodes, engine.RefOf(node))
	switch {
	case !live:
		return problem.New(problem.Surprise, "node %s is running: its interfaces cannot be changed this way", node.Name).At(m.Path()).
			Try("plan again")
	case change.IsZero():
		return nil
	case m.Group().Frozen():
		return problem.New(problem.Failed, "node %s is frozen: its networks cannot be changed", node.Name).At(node.Site).
			Try("orrery start %s", node.Name)
	case !tree.Exists(vm.GuestFilePath(g.nodes.Dirs, m.Ref, boot.NICsFile)):
		return problem.New(problem.Failed,
			"node %s was started by an earlier version of Orrery: its networks cannot be changed while it runs", node.Name).
			At(node.Site).Try("orrery restart %s", node.Name)
	}
	return m.withMonitor(ctx, func(q *qmp.Client) error {
		w := &rewiring{m, q, old, g}
		if err := w.removeNICs(ctx, change.Out); err != nil {
			return err
		}
		return w.addNICs(ctx, change.In)
	})
}

// recordInDoubt records which interfaces a machine has or may have, and which of them are in doubt.
func recordInDoubt(d nodedir.Dir, r *nodedir.Record, nics, doubtful []spec.NIC) error {
	r.NICs, r.Doubt = nics, nil
	for _, nic := range doubtful {
		r.Doubt = append(r.Doubt, nic.Network)
	}
	return d.Write(r)
}

// removeNICs removes interfaces from the machine.
func (w *rewiring) removeNICs(ctx context.Context, nics []spec.NIC) error {
	if len(nics) == 0 {
		return nil
	}
	m := w.m
	rest := spec.WithoutNICs(w.r.NICs, nics)
	if err := recordInDoubt(m.Dir, w.r, w.r.NICs, nics); err != nil {
		return err
	}
	if err := writeGuestNICs(w.guests.nodes.Dirs, m.Ref, rest); err != nil {
		return err
	}
	for _, nic := range nics {
		if err := unplugDevice(ctx, w.q, argv.CardID(nic)); err != nil {
			return w.problem(nic, "cannot be unplugged", err).Try("run the same command again, or orrery restart %s", m.Ref.Name)
		}
		if err := removeCardRemains(ctx, w.q, nic); err != nil {
			return w.problem(nic, "could not be removed from the machine", err)
		}
	}
	return recordInDoubt(m.Dir, w.r, rest, nil)
}

// addNICs adds interfaces to the machine and lets its guest configure them. They stay recorded as in
// doubt until the whole change of the node is complete.
func (w *rewiring) addNICs(ctx context.Context, nics []spec.NIC) error {
	if len(nics) == 0 {
		return nil
	}
	m, current := w.m, w.r.NICs
	served := len(current) == 0 || tree.Exists(m.vhostFile())
	if err := recordInDoubt(m.Dir, w.r, slices.Concat(current, nics), nics); err != nil {
		return err
	}
	for i, nic := range nics {
		if err := w.addNIC(ctx, nic, served); err != nil {
			return err
		}
		if err := writeGuestNICs(w.guests.nodes.Dirs, m.Ref, slices.Concat(current, nics[:i+1])); err != nil {
			return err
		}
	}
	return w.configureInGuest(ctx, nics)
}

// addNIC creates a link and plugs a card for it. All cards of a machine are served alike: by the
// host's kernel, if it serves the others.
func (w *rewiring) addNIC(ctx context.Context, nic spec.NIC, served bool) error {
	at, _, err := findFreeSlot(ctx, w.q, argv.CardID(nic))
	if err != nil {
		return err
	}
	if at == "" {
		return w.problem(nic, "has no free slot", errors.New("all are in use")).
			Try("orrery restart %s: the machine then has as many as it needs", w.r.Name)
	}
	alone := &nodedir.Record{Node: w.r.Node}
	alone.NICs = []spec.NIC{nic}
	err = w.plugCard(ctx, alone, at, served)
	if err != nil {
		after, cancel := cleanupContext(ctx)
		defer cancel()
		cleared := removeCardRemains(after, w.q, nic)
		err = errors.Join(w.problem(nic, "cannot be plugged", err), cleared)
	}
	return err
}

// plugCard plugs the card of a node's only interface.
func (w *rewiring) plugCard(ctx context.Context, alone *nodedir.Record, at string, served bool) (err error) {
	open := passedFiles{}
	defer func() { err = errors.Join(err, open.close()) }()
	if err := open.createLinks(alone); err != nil {
		return err
	}
	if served {
		if served, err = open.openVHost(w.m, &alone.Node); err != nil {
			return err
		}
	}
	for name, f := range open {
		if err := w.q.PassFile(ctx, name, f); err != nil {
			return err
		}
	}
	return addNIC(ctx, w.q, argv.CardOf(&alone.Node, alone.NICs[0], at, served))
}

// removeCardRemains removes what exists for a card that the guest no longer has: its backend in QEMU and
// its link.
func removeCardRemains(ctx context.Context, q *qmp.Client, nic spec.NIC) error {
	if err := removeNICBackend(ctx, q, nic); err != nil {
		return err
	}
	return network.RemoveLinks([]string{nic.HostIfName})
}

// configureTimeout limits how long a guest may take to configure an interface that was plugged.
const configureTimeout = 90 * time.Second

// configureInGuest makes the guest's agent configure interfaces.
func (w *rewiring) configureInGuest(ctx context.Context, nics []spec.NIC) error {
	ctx, cancel := context.WithTimeoutCause(ctx, configureTimeout,
		fmt.Errorf("its agent has not answered within %s", configureTimeout))
	defer cancel()
	agent, err := w.guests.agents.Connect(ctx, w.m.Ref)
	if err == nil {
		err = agent.ConfigureNICs(ctx, argv.GuestNICs(nics))
	}
	if err != nil {
		return w.problem(nics[0], "is plugged, but its guest could not configure it", err).
			Try("run the same command again, or orrery restart %s", w.m.Ref.Name)
	}
	return nil
}

// writeGuestNICs writes which interfaces a guest must find when it boots. The guest may reboot at any time
// without a new QEMU.
func writeGuestNICs(dirs host.Dirs, ref engine.Ref, nics []spec.NIC) error {
	return vm.WriteGuestFile(dirs, ref, boot.NICsFile, argv.GuestNICs(nics))
}

// writeRecordedNICs writes all recorded interfaces for a machine that is about to start. None of them is in
// doubt any more.
func writeRecordedNICs(dirs host.Dirs, m machine, r *nodedir.Record) error {
	if len(r.Doubt) > 0 {
		if err := recordInDoubt(m.Dir, r, r.NICs, nil); err != nil {
			return err
		}
	}
	return writeGuestNICs(dirs, m.Ref, r.NICs)
}

// problem returns a problem with an interface.
func (w *rewiring) problem(nic spec.NIC, what string, err error) *problem.Problem {
	return problem.New(problem.Failed, "node %s: network %s %s", w.m.Ref.Name, nic.Network, what).At(w.m.Ref.Site).
		Because(err)
}
