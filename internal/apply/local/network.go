package local

import (
	"context"

	"orrery/internal/network"
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
	return w.Ground.Networks.Guard(ctx, ports)
}
