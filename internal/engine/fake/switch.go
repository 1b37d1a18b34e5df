package fake

import (
	"context"
	"fmt"
	"slices"

	"orrery/internal/engine"
	"orrery/internal/plan"
	"orrery/internal/site/spec"
)

// holder reports whether a node, when it is live, has volumes that are not for two, or does something that only live nodes do.
func holder(n *spec.Node) bool {
	return !n.Staged && (n.Exclusive() || len(n.Config.Active) > 0)
}

// retire takes from a node what is not for two.
func (h *Host) retire(ctx context.Context, ref engine.Ref, n *spec.Node) error {
	if err := h.Remount(ctx, n); err != nil {
		return err
	}
	mark, _, _ := h.now(ref)
	mark.Active = false
	return h.Mark(ctx, ref, mark)
}

// activate does on a node what only a live node does; that it may have been done is on record before.
func (h *Host) activate(ctx context.Context, ref engine.Ref, n *spec.Node) error {
	if err := h.Remount(ctx, n); err != nil {
		return err
	}
	mark, is, _ := h.now(ref)
	if !wholly(&is) {
		return fmt.Errorf("node %s (id %d) is activated, and not all of its links are live", n.Name, n.ID)
	}
	mark.Active = true
	if err := h.Mark(ctx, ref, mark); err != nil {
		return err
	}
	s := h.Releases[n.Release]
	if s == nil {
		return nil
	}
	declared, ok := s.Node(n.Name)
	if !ok {
		return fmt.Errorf("release %d has no node %s", n.Release, n.Name)
	}
	mark.Config.Active = spec.Active(s.RolesOf(declared))
	return h.Mark(ctx, ref, mark)
}

// moveLinks moves the links of nodes. The kernel moves all of them at once; what is on record follows node by node. So a failure half way
// finds none of them moved, or all of them with all, some or nothing of it on record: which, depends on what was done before.
func (h *Host) moveLinks(moves []plan.Move, halfway error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	nodes := make([]*node, len(moves))
	for i, m := range moves {
		n, err := h.find(engine.RefOf(m.Is))
		if err != nil {
			return err
		}
		if err := h.movable(n, m.Is); err != nil {
			return err
		}
		nodes[i] = n
	}
	recorded := len(moves)
	if halfway != nil {
		// Of four outcomes, one by one.
		switch h.moved++; h.moved % 4 {
		case 1:
			return halfway
		case 2:
			recorded = 0
		case 3:
			recorded = len(moves) / 2
		}
	}
	was := make([]spec.Node, len(moves))
	for i, n := range nodes {
		was[i] = n.spec
		n.spec.NICs = slices.Clone(moves[i].Is.NICs)
		if i < recorded {
			n.spec.Staged, n.spec.Release = moves[i].Is.Staged, moves[i].Is.Release
		}
	}
	for _, n := range nodes {
		if err := h.alone(&n.spec); err != nil {
			for i := range nodes {
				nodes[i].spec = was[i]
			}
			return err
		}
	}
	return halfway
}

// movable reports why the links of a node cannot be moved.
func (h *Host) movable(n *node, is *spec.Node) error {
	if !n.running() {
		return fmt.Errorf("node %s (id %d) is %s: it has no links to move", is.Name, is.ID, n.state)
	}
	if !h.sameShape(&n.spec, is) {
		return fmt.Errorf("node %s (id %d) runs: only its links can be moved", is.Name, is.ID)
	}
	for _, nic := range is.NICs {
		if _, ok := h.networks[nic.Bridge]; !ok {
			return fmt.Errorf("node %s (id %d): there is no bridge for network %s", is.Name, is.ID, nic.Network)
		}
	}
	return nil
}

// forgetRelease removes what is kept of a release. No node may be left of it.
func (h *Host) forgetRelease(release int, halfway error) error {
	h.mu.Lock()
	for _, n := range h.nodes {
		if n.spec.Site == h.Site && n.spec.Release == release {
			h.mu.Unlock()
			return fmt.Errorf("release %d is forgotten, and node %s is of it", release, n.spec.Name)
		}
	}
	h.mu.Unlock()
	h.removeCopies(h.Site, release)
	if halfway == nil {
		delete(h.kept, release)
	}
	return halfway
}
