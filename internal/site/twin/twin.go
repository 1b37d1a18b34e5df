// Package twin derives sites from a site: its releases, and isolated copies of it. It decides only;
// it does no I/O, and leaves the site that it is given as it is.
//
// What nodes see of themselves and one another (names, addresses, MACs, machine-ids) is that of the
// original. What the host sees (directories, bridges, links) follows from Site.Key and so is the
// twin's own.
package twin

import (
	"math"
	"slices"
	"time"

	"orrery/internal/site"
)

// Of returns a twin of a site: on its hosts, or on this one if that is the only one, on networks of its own,
// with its own volumes, and with simulators where some are named.
// Releases can be made of it as of the original.
func Of(s *site.Site, o Options) (*site.Site, error) {
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
	made.Hooks = nil // what happens to a twin is nobody else's concern
	spread := slices.ContainsFunc(s.Hosts, func(h site.Host) bool { return !h.Local() })
	made.Networks = isolated(s.Networks, o.NAT)
	made.Volumes, made.VethPairs = ownVolumes(s.Volumes), nil
	simulate(&made)
	for i := range made.Nodes {
		n := &made.Nodes[i]
		if !spread {
			n.Host = hostName(made.Hosts) // said, not placed: a twin may have more than the host has free
		}
		least := int64(minMemory)
		if n.Virtual() {
			least = site.MinVMMemory
		}
		n.Limits = scaled(n.Limits, o, least)
		n.NICs = bridged(n.NICs)
		n.VM.PCI, n.VM.Hugepages = nil, 0 // the original has them
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

// isolated shuts the networks off. Whatever they are, each is a bridge then: nothing else is cut
// off from the original's. A way out masquerades even where the original has none that does:
// outside, the addresses are the original's.
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

// bridged leaves the host's interfaces to the original.
func bridged(nics []site.NIC) []site.NIC {
	nics = slices.Clone(nics)
	for i := range nics {
		nics[i].Interface = ""
	}
	return nics
}

// ownVolumes keeps all volumes with the host's state: where the original's data is, no twin writes.
func ownVolumes(volumes []site.Volume) []site.Volume {
	volumes = slices.Clone(volumes)
	for i := range volumes {
		v := &volumes[i]
		v.Path, v.Remote, v.Mirror, v.Every = "", site.Remote{}, "", time.Duration(0)
	}
	return volumes
}

// Less than this a node cannot use.
const (
	minCpus   = 0.05
	minMemory = 32 << 20
)

// scaled returns a node's share of the limits that it has in the original. What is not limited stays so. The
// processors to which the original is pinned are left to it.
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
	const most = 1 << 53 // more no machine has, and a float64 still counts
	return int64(math.Round(min(bytes, most)/(1<<20))) << 20
}

// choose leaves out the nodes that the twin shall not have.
func choose(s *site.Site, o Options) {
	if o.Only == nil {
		return
	}
	s.Nodes = slices.DeleteFunc(s.Nodes, func(n site.Node) bool { return !o.has(n.Name) })
	s.Groups = slices.Clone(s.Groups)
	for i := range s.Groups {
		g := &s.Groups[i]
		g.Nodes = slices.DeleteFunc(slices.Clone(g.Nodes), func(name string) bool { return !o.has(name) })
	}
	s.Tests = slices.DeleteFunc(slices.Clone(s.Tests), func(t site.Test) bool { return !o.has(t.Node) })
}
