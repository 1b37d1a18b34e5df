// Package twin derives sites from a site: its releases, and isolated copies of it. It does no I/O
// and does not modify the original site.
//
// What nodes see of themselves and each other (names, addresses, MACs, machine-ids) is the same as
// in the original. What the host sees (directories, bridges, links) depends on Site.Key and is
// therefore the twin's own.
package twin

import (
	"math"
	"slices"
	"time"

	"orrery/internal/site"
	"orrery/internal/site/service"
)

// New returns a twin of a site. It runs on the site's hosts, or on this machine if that is the only
// host. It has its own networks and volumes, and declared simulators replace nodes and roles.
// Releases can be derived from it as from the original.
func New(s *site.Site, o Options) (*site.Site, error) {
	if err := o.check(s); err != nil {
		return nil, err
	}
	of, err := Release(s, o.Release)
	if err != nil {
		return nil, err
	}
	made := *of
	made.Twin, made.Original, made.Production = o.Name, s, false
	if o.Owner != "" {
		made.Owner = o.Owner
	}
	made.Hooks = nil // events of a twin must not notify anyone
	made.Backup, made.Snapshot, made.Watch = site.Backup{}, site.Schedule{}, site.Watch{}
	spread := slices.ContainsFunc(s.Hosts, func(h site.Host) bool { return !h.Local() })
	made.Networks = isolated(s.Networks, o.NAT)
	made.Volumes, made.VethPairs = ownVolumes(s.Volumes), nil
	simulate(&made)
	for i := range made.Nodes {
		n := &made.Nodes[i]
		if !spread {
			// a fixed host, without placement, because a twin may exceed the host's free resources
			n.Host = hostName(made.Hosts)
		}
		least := int64(minMemory)
		if n.Virtual() {
			least = site.MinVMMemory
		}
		n.Limits = scaled(n.Limits, o, least)
		n.NICs = bridged(n.NICs)
		n.Publish = nil                   // the ports of the host lead to the original
		n.VM.PCI, n.VM.Hugepages = nil, 0 // in use by the original
		n.Devices = nil                   // even shared ones, which a twin could write to
	}
	choose(&made, o)
	if o.Collapse {
		if err := collapse(&made); err != nil {
			return nil, err
		}
	}
	return &made, nil
}

func hostName(hosts []site.Host) string {
	if len(hosts) == 0 {
		return ""
	}
	return hosts[0].Name
}

// isolated isolates the networks. Each network becomes a bridge, whatever its kind, because only a
// bridge can be isolated from the original's network. Traffic out of it is always masqueraded,
// because outside of the twin its addresses belong to the original.
func isolated(networks []site.Network, nat bool) []site.Network {
	networks = slices.Clone(networks)
	for i := range networks {
		n := &networks[i]
		n.Isolated, n.NAT = true, nat && n.Gateway.IsValid()
		n.Metadata = n.Metadata && n.NAT
		n.Kind, n.Interface, n.VLAN, n.Bridge = "", "", 0, ""
	}
	return networks
}

// bridged removes the interfaces of the host, which belong to the original.
func bridged(nics []site.NIC) []site.NIC {
	nics = slices.Clone(nics)
	for i := range nics {
		nics[i].Interface = ""
	}
	return nics
}

// ownVolumes stores all volumes with the host's state. A twin never writes to the data of the
// original.
func ownVolumes(volumes []site.Volume) []site.Volume {
	volumes = slices.Clone(volumes)
	for i := range volumes {
		v := &volumes[i]
		v.Path, v.Remote, v.Mirror, v.Every = "", site.Remote{}, "", time.Duration(0)
	}
	return volumes
}

// A node needs at least these resources.
const (
	minCpus   = 0.05
	minMemory = 32 << 20
)

// scaled returns the limits of a node multiplied by the twin's factors. Settings without a limit
// stay unlimited. The pinning is removed, because the original uses those processors.
func scaled(l site.Limits, o Options, leastMemory int64) site.Limits {
	l.Pin = ""
	if l.Cpus > 0 && o.Cpus > 0 && o.Cpus != 1 {
		l.Cpus = max(l.Cpus*o.Cpus, minCpus)
	}
	if o.Memory == 0 || o.Memory == 1 {
		return l
	}
	if l.Memory > 0 {
		l.Memory = max(mebibytes(float64(l.Memory)*o.Memory), leastMemory)
	}
	if l.Swap != nil {
		swap := mebibytes(float64(*l.Swap) * o.Memory)
		l.Swap = &swap
	}
	return l
}

func mebibytes(bytes float64) int64 {
	const most = 1 << 53 // more than any machine has, and still exact in a float64
	return int64(math.Round(min(bytes, most)/(1<<20))) << 20
}

// choose removes the nodes that the twin does not have.
func choose(s *site.Site, o Options) {
	if o.Only == nil {
		return
	}
	s.Nodes = slices.DeleteFunc(s.Nodes, func(n site.Node) bool { return !o.includes(n.Name) })
	s.Groups = slices.Clone(s.Groups)
	for i := range s.Groups {
		g := &s.Groups[i]
		g.Nodes = slices.DeleteFunc(slices.Clone(g.Nodes), func(name string) bool { return !o.includes(name) })
	}
	s.Services = slices.Clone(s.Services)
	for i := range s.Services {
		v := &s.Services[i]
		v.Nodes = slices.DeleteFunc(slices.Clone(v.Nodes), func(name string) bool { return !o.includes(name) })
	}
	s.Services = slices.DeleteFunc(s.Services, func(v service.Service) bool { return len(v.Nodes) == 0 })
	s.Active = slices.Clone(s.Active)
	for i := range s.Active {
		a := &s.Active[i]
		a.Nodes = slices.DeleteFunc(slices.Clone(a.Nodes), func(name string) bool { return !o.includes(name) })
	}
	s.Active = slices.DeleteFunc(s.Active, func(a service.Active) bool { return len(a.Nodes) == 0 })
	s.Tests = slices.DeleteFunc(slices.Clone(s.Tests), func(t site.Test) bool { return !o.includes(t.Node) })
}
