package fake

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"orrery/internal/engine"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/site/spec"
)

func (h *Host) doNode(ctx context.Context, s *plan.Step) error {
	n := s.Node
	if n == nil {
		n = s.Was
	}
	ref := engine.RefOf(n)
	switch s.Kind {
	case plan.CreateNode, plan.ReplaceNode:
		if err := h.layersThere(n); err != nil {
			return err
		}
		if s.Kind == plan.CreateNode {
			return h.Create(ctx, n)
		}
		return h.Replace(ctx, n)
	case plan.RestoreNode:
		return h.restore(ctx, ref, n)
	case plan.ReshapeNode, plan.LimitNode:
		return h.Change(ctx, n)
	case plan.StartNode:
		return h.start(ctx, ref)
	case plan.StopNode, plan.KillNode:
		return h.Stop(ctx, ref)
	case plan.DestroyNode:
		return h.Destroy(ctx, ref)
	case plan.ConfigureNode:
		return h.configure(ctx, ref, n)
	case plan.MendNode:
		return h.mend(ctx, ref, s.Drift)
	case plan.RevertNode:
		return h.revert(ctx, ref)
	case plan.CheckNode:
		return h.check(ctx, ref, n)
	case plan.RetireNode:
		return h.retire(ctx, ref, n)
	case plan.TakeVolumes, plan.ReturnVolumes:
		return h.Remount(ctx, n)
	case plan.ActivateNode:
		return h.activate(ctx, ref, n)
	}
	return fmt.Errorf("a fake host cannot do %q", s.Kind)
}

func (h *Host) layersThere(n *spec.Node) error {
	h.lock.Lock()
	defer h.lock.Unlock()
	if !h.layers[n.Base] || n.Layer != "" && !h.layers[n.Layer] {
		return fmt.Errorf("node %s: its layers are not there", n.Name)
	}
	return nil
}

// now gives a node as it is.
func (h *Host) now(ref engine.Ref) (engine.Mark, spec.Node, observe.State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n, ok := h.nodes[ref]; ok {
		return n.mark, n.spec, n.state
	}
	return engine.Mark{}, spec.Node{}, ""
}

// start also forgets that the node was healthy: it has to prove that anew. In quarantine it does nothing that only a live node does.
func (h *Host) start(ctx context.Context, ref engine.Ref) error {
	mark, n, _ := h.now(ref)
	if err := h.grounds(&n); err != nil {
		return err
	}
	mark.Proven = ""
	mark.Active = mark.Active && !n.Staged
	if err := h.Mark(ctx, ref, mark); err != nil {
		return err
	}
	return h.Start(ctx, ref)
}

// grounds reports what a node lacks to be started: the host's settings, names, its networks, free addresses.
func (h *Host) grounds(n *spec.Node) error {
	h.lock.Lock()
	defer h.lock.Unlock()
	if lacks := plan.Lacking(h.settings, false); len(lacks) > 0 {
		return fmt.Errorf("node %s: the host is not prepared: %v", n.Name, lacks)
	}
	if h.names == "" && n.Release == 0 { // those of a release are told of one another as they are made
		return fmt.Errorf("node %s: the names are not written", n.Name)
	}
	for _, nic := range n.NICs {
		if _, ok := h.networks[nic.Bridge]; !ok {
			return fmt.Errorf("node %s: network %s is not there", n.Name, nic.Network)
		}
		if n.Takes(nic) {
			if err := h.there(nic.Parent); err != nil {
				return fmt.Errorf("node %s: %w", n.Name, err)
			}
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, other := range h.nodes {
		if other.running() && other.spec.Name != n.Name {
			if nic, ok := clash(&other.spec, n); ok {
				return fmt.Errorf("node %s: address %s is taken by node %s", n.Name, nic.Address, other.spec.Name)
			}
		}
	}
	return nil
}

func clash(a, b *spec.Node) (spec.NIC, bool) {
	for _, x := range a.NICs {
		for _, y := range b.NICs {
			if x.Bridge == y.Bridge && x.Address == y.Address || a.Takes(x) && b.Takes(y) && x.Parent == y.Parent {
				return y, true
			}
		}
	}
	return spec.NIC{}, false
}

func (h *Host) configure(ctx context.Context, ref engine.Ref, n *spec.Node) error {
	mark, _, state := h.now(ref)
	if state != observe.Running {
		return fmt.Errorf("node %s is %s", ref.Name, state)
	}
	h.lock.Lock()
	h.mu.Lock()
	h.applied[ref] = applied{mark, maps.Clone(h.nodes[ref].files)}
	h.mu.Unlock()
	h.lock.Unlock()
	active := holder(n)
	if err := h.Mark(ctx, ref, engine.Mark{Config: mark.Config, Active: active}); err != nil {
		return err
	}
	if h.Configure != nil {
		if err := h.Configure(ctx, n, h.Runner(ref)); err != nil {
			return err
		}
	}
	return h.Mark(ctx, ref, engine.Mark{Configured: true, Config: n.Config, Active: active})
}

// mend ends what has drifted of a node. It has to prove its health anew.
func (h *Host) mend(ctx context.Context, ref engine.Ref, drift []observe.Drift) error {
	mark, _, state := h.now(ref)
	if state != observe.Running {
		return fmt.Errorf("node %s is %s", ref.Name, state)
	}
	mark.Proven = ""
	if err := h.Mark(ctx, ref, mark); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.nodes[ref]
	n.drift = slices.DeleteFunc(slices.Clone(n.drift), func(d observe.Drift) bool { return slices.Contains(drift, d) })
	return nil
}

// revert does nothing to a node whose configuration had not begun.
func (h *Host) revert(ctx context.Context, ref engine.Ref) error {
	h.lock.Lock()
	before, ok := h.applied[ref]
	h.lock.Unlock()
	if !ok {
		return nil
	}
	if err := h.Mark(ctx, ref, before.mark); err != nil {
		return err
	}
	h.lock.Lock()
	delete(h.applied, ref)
	h.lock.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.nodes[ref].files = before.files
	return nil
}

// restore does nothing to a node that has the layers that it shall be given back.
func (h *Host) restore(ctx context.Context, ref engine.Ref, as *spec.Node) error {
	_, n, state := h.now(ref)
	if state != observe.Broken && n.Layer == as.Layer && n.Base == as.Base {
		return nil
	}
	return h.Restore(ctx, ref)
}

func (h *Host) check(ctx context.Context, ref engine.Ref, n *spec.Node) error {
	mark, _, state := h.now(ref)
	if state != observe.Running {
		return fmt.Errorf("node %s is %s", ref.Name, state)
	}
	if h.Healthy != nil {
		if err := h.Healthy(n); err != nil {
			return err
		}
	}
	mark.Config.Health, mark.Proven = n.Config.Health, n.Config.Health
	return h.Mark(ctx, ref, mark)
}
