package kvm

import (
	"orrery/internal/host/numa"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// What QEMU and virtiofsd may have beside the memory of the guest. A guest that has taken one of
// them over, or that has virtiofsd open as many files as it can (confine.MaxFiles), costs the host
// this and no more.
const (
	// for QEMU itself, 0.6 GB for the files of virtiofsd, and some for the host's cache of files
	overheadBytes     = 1 << 30
	overheadShare     = 16       // one in so many bytes of the guest's memory, for what maps it
	overheadDiskBytes = 64 << 20 // for each disk: QEMU has up to 32 MiB of the tables of an image
	overheadThreads   = 1024     // of QEMU, which has one for each processor and a pool for the disks, and of virtiofsd
)

// bounds are the limits that the host's kernel enforces on all processes of a node: those of one
// machine, or of two while one takes the place of the other. Beside memory of one NUMA node it runs
// on the processors of that.
func bounds(n *spec.Node, machines int) site.Limits {
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

// limit sets the limits of the machines that a node has, before anything of them is started.
func limit(m machine, n *spec.Node, machines int) error {
	if err := m.Group().Make(); err != nil {
		return err
	}
	return m.Group().Limit(n.Name, bounds(n, machines))
}
