package local

import (
	"context"
	"slices"

	"orrery/internal/network"
	"orrery/internal/plan"
	"orrery/internal/site/spec"
)

// makeNetwork creates a network.
func (h runHost) makeNetwork(ctx context.Context, n spec.Network) error {
	if n.VXLAN.Key != "" {
		private, err := h.names.privateKey()
		if err == nil {
			err = h.Backends.Networks.Prime(n, private)
		}
		if err != nil {
			return err
		}
	}
	return h.Backends.Networks.Make(ctx, n, h.ports)
}

// ports returns the ports of the site's nodes on this host, as far as there are records of the
// nodes.
func (h runHost) ports() (all []network.Port, err error) {
	nodes, err := h.Backends.Records.All(h.Key)
	for _, n := range nodes {
		all = append(all, network.Ports(&n.Node)...)
	}
	return all, err
}

// unguard removes the guards of the ports of nodes that the site no longer has on this host. It
// does so once for all nodes that a run has removed: the kernel completes such a change only when
// no processor uses the former state any more. A port stays guarded while its node is stopped or
// reboots.
func (h runHost) unguard(ctx context.Context, done []*plan.Step) error {
	ended := slices.ContainsFunc(done, func(s *plan.Step) bool {
		return s.Kind == plan.DestroyNode || s.Kind == plan.ReshapeNode || s.Kind == plan.CleanUpNode
	})
	if !ended {
		return nil
	}
	still, err := h.ports()
	if err != nil {
		return err
	}
	return h.Backends.Networks.RemoveAntiSpoof(ctx, h.Key, still)
}
