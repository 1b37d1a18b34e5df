package local

import (
	"context"
	"slices"

	"orrery/internal/network"
	"orrery/internal/plan"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// makeNetwork makes a network. If nodes are on it whose ports nobody guards, since they come from an Orrery that did not or somebody has taken the rules
// away, their ports are guarded again.
func (w *Worker) makeNetwork(ctx context.Context, n spec.Network) error {
	if n.VXLAN.Key != "" {
		private, err := w.privateKey()
		if err == nil {
			err = w.Ground.Networks.Prime(n, private)
		}
		if err != nil {
			return err
		}
	}
	if err := w.Ground.Networks.Make(ctx, n); err != nil {
		return err
	}
	if open, err := w.Ground.Networks.Unguarded(n); err != nil || !open {
		return err
	}
	on := site.BridgeName(n.Site, n.Name)
	var ports []network.Port
	nodes, err := w.Nodes(ctx)
	if err != nil {
		return err
	}
	for i := range nodes {
		for _, p := range network.Ports(&nodes[i].Node) {
			if p.Bridge == on {
				ports = append(ports, p)
			}
		}
	}
	return w.Ground.Networks.Reguard(ctx, ports)
}

// unguard forgets the ports of nodes that the site no longer has on this host, once for all nodes that a run has removed: the
// kernel ends no such change before all processors have let go of what was there. A port stays guarded while its node is
// stopped or reboots.
func (w *Worker) unguard(ctx context.Context, done []*plan.Step) error {
	ended := slices.ContainsFunc(done, func(s *plan.Step) bool {
		return s.Kind == plan.DestroyNode || s.Kind == plan.ReshapeNode || s.Kind == plan.LeaveNode
	})
	if !ended {
		return nil
	}
	nodes, err := w.Ground.Records.All(w.Key)
	if err != nil {
		return err
	}
	var still []network.Port
	for _, n := range nodes {
		if !n.Whole {
			return nil // its ports are not known
		}
		still = append(still, network.Ports(&n.Node)...)
	}
	return w.Ground.Networks.Unguard(ctx, w.Key, still)
}
