package place

import (
	"fmt"

	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/feature"
	"orrery/internal/site/traffic"
)

// checkFeatures returns an error if a host's kernel lacks a feature that a node needs.
func checkFeatures(key string, n *site.Node, h *observe.Host) error {
	for _, d := range n.Devices {
		if lacks, ok := h.Lacks[feature.Device(fmt.Sprintf("%s/%d", key, n.FullID()), d)]; ok {
			return problem.New(problem.Unable, "node %s on host %s: %s", n.Name, h.Name, lacks.What).At("site.toml").
				Try("%s", lacks.Cure)
		}
	}
	for _, name := range feature.Of(n) {
		if lacks, ok := h.Lacks[name]; ok {
			return problem.New(problem.Unable, "node %s cannot be limited as declared on host %s: %s", n.Name, h.Name,
				lacks.What).At("site.toml").Try("%s; or remove the limit", lacks.Cure)
		}
	}
	return nil
}

// checkRates returns an error if a node may send faster than the interface of the host that carries its
// network. Frames would then be lost there, where the limit cannot prevent it.
func checkRates(s *site.Site, n *site.Node, h *observe.Host) error {
	for _, nic := range n.NICs {
		on, ok := s.Network(nic.Network)
		if !ok || !on.HasUplink() || on.Interface == "" {
			continue
		}
		if speed := h.Around.Speeds[on.Interface]; speed > 0 && int64(nic.Traffic.Rate) > speed {
			return problem.New(problem.Mistake, "node %s: net.%s: rate %v is more than the %v of interface %s of host %s", n.Name,
				nic.Network, nic.Traffic.Rate, traffic.Rate(speed), on.Interface, h.Name).At("site.toml").
				Try("write a rate of at most %v", traffic.Rate(speed))
		}
	}
	return nil
}
