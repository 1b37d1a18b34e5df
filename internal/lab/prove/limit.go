// Package prove loads nodes beyond their limits, counts what comes through at the interface, at the
// disk or in the control group, and decides whether the limits hold.
//
// The loads are Orrery's own, so nodes need no programs. Frames are sent by packet sockets: to a node
// from the host's end of its link, and from a node out of its network namespace. Their protocol is
// one for local experiments, and they are addressed to the node itself. So they pass the limits, and
// then every system ignores them. Disks and processors are loaded by a child process in the control
// group of the node.
package prove

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"orrery/internal/host"
	"orrery/internal/host/cgroup"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// The kinds of limits. No load proves those of memory and processes.
const (
	ToNode     = "to the node"
	FromNode   = "from the node"
	Read       = "read"
	Write      = "write"
	ReadIOPS   = "reads"
	WriteIOPS  = "writes"
	Processors = "cpus"
	Memory     = "memory"
	Processes  = "pids"
)

// The units of limits.
const (
	BitsPerSecond     = "bit/s"
	BytesPerSecond    = "B/s"
	RequestsPerSecond = "1/s"
	CPUs              = "cpus"
	Bytes             = "B"
	Count             = ""
)

// A Limit is a declared limit.
type Limit struct {
	Name  string  `json:"limit"` // as in the site file, such as "net.lan.rate", "disk.read" or "cpus"
	Kind  string  `json:"kind"`
	Value float64 `json:"declared"`
	Unit  string  `json:"unit"`

	nic   spec.NIC
	other float64 // the other limit of the same requests (bytes per second, or requests per second), or 0
}

// Title returns the name of a limit with its direction, if the name does not tell it.
func (l *Limit) Title() string {
	switch l.Kind {
	case ToNode, FromNode, ReadIOPS, WriteIOPS:
		return l.Name + " " + l.Kind
	default:
		return l.Name
	}
}

// Declared returns the limits of a node. The default limit of processes is none that a user declares.
func Declared(n *spec.Node) (all []Limit) {
	for _, nic := range n.NICs {
		if nic.Traffic.Rate == 0 {
			continue
		}
		for _, kind := range []string{ToNode, FromNode} {
			all = append(all, Limit{Name: "net." + nic.Network + ".rate", Kind: kind, Value: float64(nic.Traffic.Rate),
				Unit: BitsPerSecond, nic: nic})
		}
	}
	d := n.Limits.Disk
	add := func(name, kind, unit string, value, other float64) {
		if value > 0 {
			all = append(all, Limit{Name: name, Kind: kind, Value: value, Unit: unit, other: other})
		}
	}
	add("disk.read", Read, BytesPerSecond, float64(d.Read), float64(d.IOPS))
	add("disk.write", Write, BytesPerSecond, float64(d.Write), float64(d.IOPS))
	add("disk.iops", ReadIOPS, RequestsPerSecond, float64(d.IOPS), float64(d.Read))
	add("disk.iops", WriteIOPS, RequestsPerSecond, float64(d.IOPS), float64(d.Write))
	add("cpus", Processors, CPUs, n.Limits.Cpus, 0)
	add("memory", Memory, Bytes, float64(n.Limits.Memory), 0)
	if n.Limits.Pids != site.DefaultPids {
		add("pids", Processes, Count, float64(n.Limits.Pids), 0)
	}
	return all
}

// Any reports whether a node of a site declares a limit that a load can prove. Chosen has the names
// of the nodes to look at, or is nil for all.
func Any(s *site.Site, chosen map[string]bool) bool {
	return slices.ContainsFunc(s.Nodes, func(n site.Node) bool {
		if chosen != nil && !chosen[n.Name] {
			return false
		}
		d := n.Limits.Disk
		return n.Limits.Cpus > 0 || d.Read > 0 || d.Write > 0 || d.IOPS > 0 ||
			slices.ContainsFunc(n.NICs, func(nic site.NIC) bool { return nic.Traffic.Rate > 0 })
	})
}

// A Target is a running node of this host.
type Target struct {
	Name     string
	NICs     []spec.NIC
	Limits   site.Limits
	NetSpace string       // file of its network namespace, or "" if the host has none of the node
	Group    cgroup.Group // its control group
	Grouped  bool         // its processes are in Group
}

// nicOn returns the interface of a node on a network.
func (t *Target) nicOn(network string) (nic spec.NIC, ok bool) {
	i := slices.IndexFunc(t.NICs, func(n spec.NIC) bool { return n.Network == network })
	if i < 0 {
		return nic, false
	}
	return t.NICs[i], true
}

// unitsOf returns how large one frame or request of a load should be, in bytes. So many pass in the
// given time that counting whole ones is exact enough.
func unitsOf(bytesPerSecond, seconds float64, least, most int) int {
	const enough = 300
	n := int(math.Min(bytesPerSecond*seconds/enough, float64(most)))
	return min(max(n, least), most)
}

// Neighbour returns the next node after a node, in the order given, that can bear the same load. It
// returns nil if there is none.
func Neighbour(all []*Target, of *Target, l Limit) *Target {
	at := slices.Index(all, of)
	for i := 1; i < len(all); i++ {
		next := all[(at+i)%len(all)]
		if canLoad(next, l) == "" {
			return next
		}
	}
	return nil
}

// canLoad returns why a node cannot be loaded as a limit of that kind needs it, or "".
func canLoad(t *Target, l Limit) string {
	switch l.Kind {
	case Memory:
		return "a load beyond it would take memory from the node's own programs, and could end them"
	case Processes:
		return "a load beyond it would keep the node's own programs from starting processes"
	case ToNode, FromNode:
		nic, ok := t.nicOn(l.nic.Network)
		switch {
		case !ok:
			return "the node is not on network " + l.nic.Network
		case nic.HostIfName == "" || !site.KindOf(nic.Kind).HasHostEnds():
			return "the interface has no end on the host"
		case l.Kind == FromNode && t.NetSpace == "":
			return "a virtual machine sends only what its own programs send"
		}
	default:
		if !t.Grouped {
			return "its engine keeps its processes out of the control groups of this host"
		}
		return t.lacksRoom(host.ReadSample(t.Group.Name()))
	}
	return ""
}

// lacksRoom returns why the process that loads a node has no room within the node's other limits, or "".
// It counts as one of the node's own.
func (t *Target) lacksRoom(s host.Sample) string {
	const memory = 64 << 20
	threads := 64 + int(t.Limits.Cpus)
	switch {
	case t.Limits.Memory > 0 && s.Memory > t.Limits.Memory-memory:
		return "the load needs 64 MiB, and the node has used more of its memory"
	case t.Limits.Pids > 0 && s.Pids > int64(t.Limits.Pids-threads):
		return fmt.Sprintf("the load needs %d threads, and the node has more of its pids in use", threads)
	default:
		return ""
	}
}

// median returns the median of values, or 0 of none.
func median(values []float64) float64 {
	v := slices.SortedFunc(slices.Values(values), cmp.Compare)
	switch n := len(v); {
	case n == 0:
		return 0
	case n%2 == 1:
		return v[n/2]
	default:
		return (v[n/2-1] + v[n/2]) / 2
	}
}
