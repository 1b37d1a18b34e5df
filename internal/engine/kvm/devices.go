package kvm

import (
	"context"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"

	"orrery/internal/engine/confine"
	"orrery/internal/engine/kvm/qmp"
	"orrery/internal/host/pci"
	"orrery/internal/host/process"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// vhostFile returns the path of a file that exists while the host's kernel serves the network cards of
// a running machine.
func (m machine) vhostFile() string { return filepath.Join(m.Run, "vhost") }

// bindPCI takes the PCI functions of a node from the host and makes them, and no others, visible to
// QEMU.
func (l *launch) bindPCI(ctx context.Context, cell *confine.Sandbox) (at []string, err error) {
	n := &l.r.Node
	if len(n.VM.PCI) == 0 {
		return nil, nil
	}
	devices, err := pci.Local.BindVFIO(ctx, l.m.pciOwner(), n.VM.PCI)
	if err != nil {
		return nil, err
	}
	for _, address := range n.VM.PCI {
		dir, err := pci.Local.Directory(address)
		if err != nil {
			return nil, err
		}
		at = append(at, dir)
	}
	cell.Devices = append(cell.Devices, devices...)
	cell.Sees = append(cell.Sees, at...)
	// All memory of the guest is locked, because devices access it directly. Add room for the
	// memory of the functions themselves.
	const besides = 1 << 30
	cell.Locked = n.GuestMemory() + besides
	return at, nil
}

// pciOwner returns the name under which PCI functions are lent to the machine.
func (m machine) pciOwner() string { return fmt.Sprintf("%s/%d", m.Ref.Site, m.Ref.ID) }

// pin pins each processor of a machine to one of the host's processors that the node is pinned to.
func pin(ctx context.Context, m machine, n *spec.Node) error {
	if n.VM.Pin != site.PinPerCPU {
		return nil
	}
	var vcpus []struct {
		Index  int `json:"cpu-index"`
		Thread int `json:"thread-id"` // as QEMU sees it, in a pid namespace of its own
	}
	err := m.withMonitor(ctx, func(q *qmp.Client) error { return q.Do(ctx, "query-cpus-fast", nil, &vcpus) })
	if err != nil {
		return err
	}
	threads, err := process.Host.Threads(m.qemu())
	if err != nil {
		return err
	}
	on := site.ListProcessors(n.Limits.Pin)
	for _, v := range vcpus {
		thread, known := threads[v.Thread]
		if !known || v.Index < 0 || v.Index >= len(on) {
			return fmt.Errorf("processor %d of the machine cannot be pinned: QEMU reports no thread of its own for it",
				v.Index)
		}
		var set unix.CPUSet
		set.Set(on[v.Index])
		if err := unix.SchedSetaffinity(thread, &set); err != nil {
			return fmt.Errorf("processor %d of the machine is not pinned to %d: %w", v.Index, on[v.Index], err)
		}
	}
	return nil
}
