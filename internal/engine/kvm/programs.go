package kvm

import (
	"context"
	"path/filepath"
	"sync"

	"orrery/internal/engine/vm"
	"orrery/internal/host"
	"orrery/internal/host/qemu"
	"orrery/internal/observe"
)

// programs are the programs of this host that run machines.
type programs struct {
	versions qemu.Versions // cached in a file, so that a command that looks at a host asks no program again
	accel    func() (accel string, why error)
}

func programsOf(dirs host.Dirs) *programs {
	return &programs{qemu.Versions{File: filepath.Join(dirs.Run, "programs.json")}, sync.OnceValues(qemu.Accel)}
}

// Capabilities returns what machines can do on this host, if they can run.
func (p *programs) Capabilities() observe.Capabilities {
	caps := capable
	if lack := qemu.CheckRequirements(); lack != nil {
		caps.Unable = vm.AsLack(lack)
	}
	return caps
}

var capable = observe.Capabilities{MoveNIC: true, Remount: true, PlugDisk: true, PlugNIC: true, Keep: true, Move: true}

// ProbeCapabilities returns the Capabilities with the accelerator and the processor models, and whether QEMU is
// too old.
func (p *programs) ProbeCapabilities(ctx context.Context) observe.Capabilities {
	caps := capable
	if lack := p.versions.CheckRequirements(ctx); lack != nil {
		caps.Unable = vm.AsLack(lack)
		return caps
	}
	if lack := p.versions.CheckMigration(ctx); lack != nil {
		caps.Stuck = vm.AsLack(lack)
	}
	caps.Accel, _ = p.accel()
	caps.Models = p.versions.Models(ctx)
	return caps
}
