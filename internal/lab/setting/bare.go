package setting

import (
	"fmt"
	"net/netip"
	"path/filepath"

	"orrery/internal/host/cgroup"
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/place"
	"orrery/internal/site/spec"
)

// bare returns the host as a place for one copy.
func (s *Testbed) bare(b *place.Bare, setting string, copied int, gateway netip.Addr, far *spec.Node) *place.Place {
	p := &place.Place{
		Runner: b, Name: setting, Address: gateway, Root: b.Root, Programs: b.Argv,
		Dir: filepath.Join(s.Work, nodeName(setting), fmt.Sprint(copied)),
	}
	for _, nic := range far.NICs {
		if nic.Network == lan {
			p.Interface = nic.Bridge
			p.HostLinks = []string{nic.Bridge, nic.HostIfName}
		}
	}
	return p
}

// bareGroup returns the control group of a copy on the bare host. Each copy has its own, like each
// node.
func bareGroup(site, setting string, copied int) cgroup.Group {
	return cgroup.InSite(site, fmt.Sprintf("%s-%d", nodeName(setting), copied))
}

// BareGroups returns the control groups of the bare host's commands.
func (s *Testbed) BareGroups(site string) (all []cgroup.Group) {
	for _, name := range []string{experiment.Bare, experiment.Control} {
		for i := range s.maxCopies() {
			all = append(all, bareGroup(site, name, i))
		}
	}
	return all
}
