package local

import (
	"context"
	"slices"

	"orrery/internal/network"
	"orrery/internal/plan"
	"orrery/internal/site/spec"
)

// makeNetwork makes a network.
func (h runHost) makeNetwork(ctx context.Context, n spec.Network) error {
	if n.VXLAN.Key != "" {
		private, err := h.names.privateKey()
		if err == nil {
			err = h.Ground.Networks.Prime(n, private)
		}
		if err != nil {
			return err
		}
	}
	return h.Ground.Networks.Make(ctx, n, h.ports)
}

// ports returns those of the site's nodes on this host, as far as there are records of them.
func (h runHost) ports() (all []network.Port, err error) {
	nodes, err := h.Ground.Records.All(h.Key)
	for _, n := range nodes {
		all = append(all, network.Ports(&n.Node)...)
	}
	return all, err
}

// unguard forgets the ports of nodes that the site no longer has on this host, once for all nodes
// that a run has removed: the kernel ends no such change before all processors have let go of what
// was there. A port stays guarded while its node is stopped or reboots.
func (h runHost) unguard(ctx context.Context, done []*plan.Step) error {
	ended := slices.ContainsFunc(done, func(s *plan.Step) bool {
		return s.Kind == plan.DestroyNode || s.Kind == plan.ReshapeNode || s.Kind == plan.LeaveNode
	})
	if !ended {
		return nil
	}
	still, err := h.ports()
	if err != nil {
		return err
	}
	return h.Ground.Networks.Unguard(ctx, h.Key, still)
}
