package release_test

import (
	"fmt"
	"slices"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/site/selector"
	"orrery/internal/site/spec"
)

// askPeers is a health check that asks all nodes that a node needs, which in turn ask those that
// they need.
func (w *world) askPeers(n *spec.Node) error {
	for _, peer := range w.peers(n) {
		instance := w.instance(peer, n.Release)
		if !n.Staged {
			instance = w.liveInstance(peer)
		}
		switch {
		case instance == nil: // it was never staged
			continue
		case instance.State != observe.Running:
			return fmt.Errorf("node %s of release %d does not run", peer, instance.Release)
		case instance.Staged != n.Staged:
			return fmt.Errorf("node %s of release %d is on another network", peer, instance.Release)
		case slices.ContainsFunc(instance.Mounts, func(m spec.Mount) bool { return m.Copy == spec.NoCopy }):
			return fmt.Errorf("node %s of release %d is retired", peer, instance.Release)
		}
		if err := w.askPeers(&instance.Node); err != nil {
			return err
		}
	}
	return nil
}

// peers returns the names of the nodes that the roles of a node need to be healthy.
func (w *world) peers(n *spec.Node) (names []string) {
	s := w.host.Releases[n.Release]
	declared, ok := s.Node(n.Name)
	if !ok {
		return nil
	}
	for _, role := range s.RolesOf(declared) {
		for _, text := range role.NeedsHealthy {
			nodes, err := selector.Select(s, text)
			if err != nil {
				w.t.Fatal(err)
			}
			for _, peer := range nodes {
				names = append(names, peer.Name)
			}
		}
	}
	return names
}

// instance returns the instance of a node in a release, or nil.
func (w *world) instance(name string, release int) *observe.Node {
	return w.find(func(n *observe.Node) bool { return n.Name == name && n.Release == release })
}

// liveInstance returns the live instance of a node, or nil.
func (w *world) liveInstance(name string) *observe.Node {
	return w.find(func(n *observe.Node) bool { return n.Name == name && !n.Staged })
}

func (w *world) find(which func(*observe.Node) bool) *observe.Node {
	nodes := w.observe()[0].Nodes
	if i := slices.IndexFunc(nodes, func(n observe.Node) bool { return which(&n) }); i >= 0 {
		return &nodes[i]
	}
	return nil
}

// former reports whether rollback returns to an instance.
func (w *world) former(n *spec.Node) bool {
	release, ok := w.observe()[0].Releases.Former[n.Name]
	return ok && release == n.Release
}

// wantPeersFirst: what goes live is proven only after all nodes have started that it needs, be it
// through others that stay as they are.
func (w *world) wantPeersFirst(p *plan.Plan, at map[string]int) {
	w.t.Helper()
	for _, s := range p.Steps {
		if s.Kind != plan.CheckNode || s.Node.Staged {
			continue
		}
		needed, first := map[string]bool{}, before(p, s)
		var need func(name string)
		need = func(name string) {
			for _, peer := range w.peers(&spec.Node{Name: name, Release: at[name]}) {
				if !needed[peer] {
					needed[peer] = true
					need(peer)
				}
			}
		}
		need(s.Subject)
		for _, other := range p.Steps {
			if other.Kind == plan.StartNode && !other.Node.Staged && needed[other.Subject] && !first[other.N] {
				w.t.Fatalf("%s does not wait for %s\n%s", s, other, text(p))
			}
		}
	}
}
