package local

import (
	"orrery/internal/host/cgroup"
	"orrery/internal/host/devices"
	"orrery/internal/observe"
	"orrery/internal/site/feature"
	"orrery/internal/site/traffic"
)

// lacks tries the features of the kernel that are in wanted, and returns those that it lacks.
func (h stateHost) lacks(wanted []string) map[string]observe.Missing {
	all := map[string]observe.Missing{}
	try := map[string]func() observe.Missing{
		feature.Rate: func() observe.Missing {
			return h.Backends.Traffic.Lacks(traffic.Limits{Rate: traffic.MinRate})
		},
		feature.Delay: func() observe.Missing {
			return h.Backends.Traffic.Lacks(traffic.Limits{Latency: traffic.MaxLatency})
		},
		feature.Disk: cgroup.LacksDiskLimits,
	}
	for _, name := range wanted {
		if node, d, ok := feature.ParseDevice(name); ok {
			try[name] = func() observe.Missing { return devices.Local.Lacks(node, d) }
		}
		if lacks, ok := try[name]; ok {
			if what := lacks(); what != (observe.Missing{}) {
				all[name] = what
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}
