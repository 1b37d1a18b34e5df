package kvm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"orrery/internal/engine/confine"
	"orrery/internal/engine/kvm/argv"
	"orrery/internal/host/pci"
	"orrery/internal/host/process"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// vhostNet is what lets the host's kernel serve network cards.
const vhostNet = "/dev/vhost-net"

// served is a file that is there while the host's kernel serves the cards of a machine that runs.
func (m machine) served() string { return filepath.Join(m.Run, "vhost") }

// serve opens what serves the cards of a node, one for each queue, and reports whether the host's kernel is to do so. Where it cannot, QEMU does, unless the node wants it.
func (m machine) serve(open handed, n *spec.Node) (vhost bool, err error) {
	if !argv.Servable(n) || len(n.NICs) == 0 {
		return false, nil
	}
	for _, nic := range n.NICs {
		for queue := range argv.Queues(n) {
			f, err := os.OpenFile(vhostNet, os.O_RDWR, 0)
			if err != nil {
				if n.VM.VHost == nil && len(open) == 0 {
					return false, nil
				}
				return false, problem.New(problem.Unable, "node %s: the host's kernel cannot serve its network cards", n.Name).Because(err).
					Try("modprobe vhost_net, or take vm.vhost out")
			}
			open[argv.VHost(nic, queue)] = f
		}
	}
	if err := os.MkdirAll(m.Run, 0o700); err != nil {
		return true, err
	}
	return true, os.WriteFile(m.served(), nil, 0o600)
}

// lend takes the PCI functions of a node from the host, and lets QEMU see them and no others.
func (m machine) lend(ctx context.Context, cell *confine.Cell, n *spec.Node) (at []string, err error) {
	if len(n.VM.PCI) == 0 {
		return nil, nil
	}
	devices, err := pci.Here.Lend(ctx, m.holder(), n.VM.PCI)
	if err != nil {
		return nil, err
	}
	for _, address := range n.VM.PCI {
		dir, err := pci.Here.Directory(address)
		if err != nil {
			return nil, err
		}
		at = append(at, dir)
	}
	cell.Devices = append(cell.Devices, devices...)
	cell.Sees = append(cell.Sees, at...)
	// All memory of the guest stays where it is, as devices reach it; with it, what the functions themselves have for memory.
	const besides = 1 << 30
	cell.Locked = n.GuestMemory() + besides
	return at, nil
}

// holder is who PCI functions are lent to.
func (m machine) holder() string { return fmt.Sprintf("%s/%d", m.Ref.Site, m.Ref.ID) }

// pinEach pins each processor of a machine to one of those that the node is pinned to.
func (m machine) pinEach(ctx context.Context, n *spec.Node) error {
	if n.VM.Pin != site.PinEach {
		return nil
	}
	q, err := m.monitor(ctx)
	if err != nil {
		return err
	}
	defer q.Close() //nolint:errcheck // it was asked
	var vcpus []struct {
		Index  int `json:"cpu-index"`
		Thread int `json:"thread-id"` // as QEMU sees it, in a namespace of its own
	}
	if err := q.Do(ctx, "query-cpus-fast", nil, &vcpus); err != nil {
		return err
	}
	threads, err := process.Host.Threads(m.qemu())
	if err != nil {
		return err
	}
	on := site.EachOf(n.Limits.Pin)
	for _, v := range vcpus {
		thread, known := threads[v.Thread]
		if !known || v.Index < 0 || v.Index >= len(on) {
			return fmt.Errorf("processor %d of the machine cannot be pinned: it is no thread of QEMU's, or there is none for it", v.Index)
		}
		var set unix.CPUSet
		set.Set(on[v.Index])
		if err := unix.SchedSetaffinity(thread, &set); err != nil {
			return fmt.Errorf("processor %d of the machine is not pinned to %d: %w", v.Index, on[v.Index], err)
		}
	}
	return nil
}
