package kvm

import (
	"orrery/internal/host/numa"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// What QEMU and virtiofsd may use in addition to the guest's memory. If a guest takes over one of
// them, or makes virtiofsd open as many files as it can (confine.MaxFiles), it costs the host no
// more than this.
const (
	// QEMU itself, 0.6 GB for the files of virtiofsd, and some for the host's page cache.
	overheadBytes     = 1 << 30
	overheadShare     = 16       // divisor of the guest's memory, for page tables
	overheadDiskBytes = 64 << 20 // for each disk: QEMU caches up to 32 MiB of an image's tables
	// QEMU has a thread for each processor and a pool for the disks. The threads of virtiofsd
	// count, too.
	overheadThreads = 1024
)

// hostLimits returns the limits that the host's kernel enforces on all processes of a node: for one
// machine, or for two during a takeover. If the memory is on one NUMA node, the machine runs on the
// processors of that NUMA node.
func hostLimits(n *spec.Node, machines int) site.Limits {
	memory := n.GuestMemory()
	overhead := overheadBytes + memory/overheadShare + overheadDiskBytes*int64(len(n.VM.Drives()))
	l := site.Limits{
		Cpus: n.Limits.Cpus, Pin: n.Limits.Pin,
		Memory: (memory + overhead) * int64(machines),
		Pids:   (overheadThreads + n.Limits.VCPUs()) * machines,
	}
	if n.VM.Numa == nil || l.Pin != "" {
		return l
	}
	for _, memory := range numa.Nodes(numa.Sys) {
		if memory.ID == *n.VM.Numa {
			l.Pin = memory.Online
		}
	}
	return l
}

// applyLimits sets the limits of a node's machines before any of their programs is started.
func applyLimits(m machine, n *spec.Node, machines int) error {
	if err := m.Group().Create(); err != nil {
		return err
	}
	return m.Group().SetLimits(n.Name, hostLimits(n, machines))
}
