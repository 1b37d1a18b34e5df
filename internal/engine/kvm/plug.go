package kvm

import (
	"context"
	"errors"

	"orrery/internal/engine"
	"orrery/internal/engine/kvm/argv"
	"orrery/internal/engine/kvm/qmp"
	"orrery/internal/engine/nodedir"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// A replugging is a change of a running machine's disks.
type replugging struct {
	m machine
	q *qmp.Client
	r *nodedir.Record
}

// replug changes the disks of a running machine. If a step fails, earlier steps stay done and later
// ones are not tried.
func replug(ctx context.Context, g *guests, old *nodedir.Record, vm site.VM) error {
	change, live := old.VM.DiskChange(vm)
	if !live {
		return problem.New(problem.Surprise, "node %s is running: its disks cannot be changed this way", old.Name).At(old.Site).
			Try("plan again")
	}
	if change.String() == "" {
		return nil
	}
	m := machineOf(g.nodes, engine.RefOf(&old.Node))
	return m.withMonitor(ctx, func(q *qmp.Client) error {
		if err := g.agents.CheckUnused(ctx, m.Machine, change.Out); err != nil {
			return err
		}
		return (&replugging{m, q, old}).do(ctx, change)
	})
}

func (p *replugging) do(ctx context.Context, change site.DiskChange) error {
	for _, d := range change.Out {
		if err := p.unplug(ctx, d); err != nil {
			return err
		}
	}
	for _, d := range change.In {
		if err := p.plug(ctx, d); err != nil {
			return err
		}
	}
	if err := resize(ctx, p.q, p.m, change.Larger); err != nil {
		return err
	}
	for _, d := range change.Bound {
		if err := p.q.Do(ctx, "qom-set", map[string]any{"path": "/objects/" + argv.GroupID(d), "property": "limits",
			"value": argv.LimitsOf(d)}, nil); err != nil {
			return p.m.DiskProblem(d, "could not get other limits", err)
		}
	}
	return nil
}

// plug adds a disk to a running machine. If the disk is plugged already, plug does nothing: the run
// that plugged it may have been killed before it recorded that.
func (p *replugging) plug(ctx context.Context, drive site.Drive) error {
	m := p.m
	at, plugged, err := findFreeSlot(ctx, p.q, argv.DriveID(drive))
	if err != nil || plugged {
		return err
	}
	if at == "" {
		return m.DiskProblem(drive, "has no free slot", errors.New("all are in use")).
			Try("orrery restart %s: the machine then has as many as it needs", m.Ref.Name)
	}
	if err := m.Disk(drive).Forget(); err != nil { // the machine has no disk of that name
		return err
	}
	if err := m.ProvideDisk(ctx, p.r, drive); err != nil {
		return err
	}
	f, err := m.Disk(drive).Open()
	if err != nil {
		return err
	}
	defer f.Close()
	if err := addDrive(ctx, p.q, drive, f, at); err != nil {
		err = m.DiskProblem(drive, "cannot be plugged", err)
		after, cancel := cleanupContext(ctx)
		defer cancel()
		return errors.Join(err, removeDriveBackend(after, p.q, drive))
	}
	return nil
}

// unplug removes a disk from a running machine after asking the guest to release it.
func (p *replugging) unplug(ctx context.Context, drive site.Drive) error {
	if err := unplugDevice(ctx, p.q, argv.DriveID(drive)); err != nil {
		return p.m.DiskProblem(drive, "cannot be unplugged", err).
			Try("unmount it in the guest and run the same command again, or orrery restart %s", p.m.Ref.Name)
	}
	if err := removeDriveBackend(ctx, p.q, drive); err != nil {
		return p.m.DiskProblem(drive, "could not be removed from the machine", err)
	}
	return nil
}
