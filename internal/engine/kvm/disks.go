package kvm

import (
	"context"
	"slices"

	"orrery/internal/engine"
	"orrery/internal/engine/kvm/argv"
	"orrery/internal/engine/kvm/qmp"
	"orrery/internal/engine/vm"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// growImages grows qcow2 images to their declared size. Raw files have that size already.
func growImages(ctx context.Context, m machine, n *spec.Node) error {
	images := slices.DeleteFunc(n.VM.Drives(), func(d site.Drive) bool { return d.Disk != site.QCow2 })
	if len(images) == 0 {
		return nil
	}
	return m.withMonitor(ctx, func(q *qmp.Client) error { return resize(ctx, q, m, images) })
}

func resize(ctx context.Context, q *qmp.Client, m machine, larger []site.Drive) error {
	for _, d := range larger {
		if err := q.Do(ctx, "block_resize", map[string]any{"node-name": argv.BlockID(d), "size": d.Size}, nil); err != nil {
			return m.DiskProblem(d, "could not be enlarged", err)
		}
	}
	return nil
}

// Receive makes a stopped machine from what was received from another host.
func (e *Engine) Receive(ctx context.Context, n *spec.Node, layer string, m engine.Progress, resumes bool) error {
	if err := vm.CheckReceivedDisks(n.Name, layer); err != nil {
		return err
	}
	return e.Nodes.Receive(ctx, n, layer, m, resumes)
}

// wipeDevices erases the signature of the root disk's file system from its device when a node is
// destroyed, so that another node can use the device. The contents of the node's other devices
// stay.
func wipeDevices(ctx context.Context, m machine) error {
	r, err := m.Read()
	if err != nil {
		return nil // the node is half made or missing
	}
	for _, drive := range r.VM.Drives() {
		if drive.IsDevice() && drive.Name == site.RootDisk {
			return m.Disk(drive).WipeSignature(ctx, m.Disks())
		}
	}
	return nil
}
