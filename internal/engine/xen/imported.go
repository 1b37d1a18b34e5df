package xen

import (
	"context"

	"orrery/internal/engine"
	"orrery/internal/engine/confine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/engine/vm"
	"orrery/internal/host"
	"orrery/internal/host/xl"
	"orrery/internal/image/foreign"
	"orrery/internal/image/rootfs"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// prepareImported prepares the foundation of a domain that boots a foreign disk. In place of a root,
// its QEMU gets the directory with the node's overlay. It receives the image in the store open.
func prepareImported(nodes *nodedir.Nodes, m machine, r *nodedir.Record) (*environment, error) {
	base, disk, err := nodes.Store.OpenDisk(r.Base)
	if err != nil {
		return nil, err
	}
	defer base.Close()
	if err := m.CheckDisk(disk.Format); err != nil {
		return nil, err
	}
	f, err := newEnvironment(m, r, &rootfs.Overlay{Upper: m.Private(), Target: m.Root(), IDs: r.IDs()})
	if err != nil {
		return nil, err
	}
	if r.Xen.Kind() != site.HVM {
		if f.kernel, err = xl.Loader(r.Xen.Kind()); err != nil {
			return nil, err
		}
	}
	f.drives = []drive{{bootDevice, nodedir.OverlayPath(f.overlay.Target), foreign.QCow2}}
	f.backend.Files = []confine.FDSetFile{{Path: base.Name(), Set: foreign.BackingFDSet}}
	return f, nil
}

// unsupportedRunner returns the runner of a node with an unknown system on its disk, in which no commands
// can be run.
func unsupportedRunner(ref engine.Ref, running func(engine.Ref) bool) host.Runner {
	return vm.GuestRunner(func(context.Context) (host.Runner, error) {
		if !running(ref) {
			return nil, engine.NotRunning(ref)
		}
		return nil, problem.New(problem.Unable,
			"node %s: the system on its disk is unknown, and commands cannot run in it", ref.Name).At(ref.Site).
			Try("use its network; or orrery console %s", ref.Name)
	})
}

// requestShutdown asks the kernel of a guest to shut down, or its firmware if the kernel does not support
// Xen.
func (m machine) requestShutdown(ctx context.Context) error {
	return xl.Run(ctx, "shutdown", "-F", m.domain())
}
