package plan

import (
	"fmt"

	"orrery/internal/observe"
	"orrery/internal/phrase"
	"orrery/internal/site"
)

// warn tells of nodes that run, but not as their user may think.
func (d *draft) warn(h *observe.Host, nodes []*site.Node) {
	var slow []string
	for _, n := range nodes {
		if h.Engines[n.Engine].Accel == observe.TCG {
			slow = append(slow, n.Name)
		}
	}
	if len(slow) > 0 {
		d.Warnings = append(d.Warnings, Emulated(h.Name, slow))
	}
	d.crowd(h, nodes)
}

// Emulated warns of virtual machines of a host whose processors are emulated.
func Emulated(host string, nodes []string) string {
	return fmt.Sprintf("on host %s virtual machines run in software emulation, many times as slow as containers: %s; `orrery doctor` says why", host, phrase.List(nodes, 8))
}

// crowd warns of virtual machines that have more processors than their host.
func (d *draft) crowd(h *observe.Host, nodes []*site.Node) {
	var many []string
	for _, n := range nodes {
		if n.Virtual() && h.Cpus > 0 && n.Limits.VCPUs() > h.Cpus {
			many = append(many, fmt.Sprintf("%s (%d)", n.Name, n.Limits.VCPUs()))
		}
	}
	if len(many) > 0 {
		d.Warnings = append(d.Warnings, fmt.Sprintf("virtual machines have more processors than host %s, which has %d: %s", h.Name, h.Cpus, phrase.List(many, 8)))
	}
}
