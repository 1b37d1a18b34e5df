package local

import (
	"context"
	"slices"

	"orrery/internal/engine"
	"orrery/internal/problem"
	"orrery/internal/role"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// deactivate stops on a node what must not run twice, and removes its access to the volumes that only
// one node may use.
func (w roleRun) deactivate(ctx context.Context) error {
	if err := w.invalidateState(ctx); err != nil {
		return err
	}
	if err := w.apply(ctx, (*role.Job).Retire); err != nil {
		return err
	}
	if err := w.remount(ctx); err != nil {
		return err
	}
	if err := w.removeFormerCopies(); err != nil {
		return err
	}
	return w.recordState(ctx, false, nil)
}

// useVolumes replaces a quarantined node's copies of volumes by the volumes. Services start when the node
// is live.
func (w roleRun) useVolumes(ctx context.Context) error {
	if err := w.invalidateState(ctx); err != nil {
		return err
	}
	if err := w.apply(ctx, (*role.Job).ReleaseVolumes); err != nil {
		return err
	}
	if err := w.lifecycle.provide(ctx, w.node); err != nil {
		return err
	}
	return w.remount(ctx)
}

// useVolumeCopies undoes take.
func (w roleRun) useVolumeCopies(ctx context.Context) error {
	if err := w.useVolumes(ctx); err != nil {
		return err
	}
	if err := w.apply(ctx, (*role.Job).Resume); err != nil {
		return err
	}
	return w.recordState(ctx, false, nil)
}

// activate does on a node what only a live node does. The record is written before it begins.
func (w roleRun) activate(ctx context.Context) error {
	if err := w.remount(ctx); err != nil {
		return err
	}
	if err := w.invalidateState(ctx); err != nil {
		return err
	}
	if err := w.apply(ctx, (*role.Job).Activate); err != nil {
		return err
	}
	var all []*site.Role
	for i := range w.duties.Roles {
		all = append(all, w.duties.Roles[i].Role)
	}
	return w.recordState(ctx, true, spec.ActiveParts(all))
}

// apply does a part of what the roles of a node ask for.
func (w roleRun) apply(ctx context.Context, do func(*role.Job, context.Context) error) error {
	job, log, err := w.job()
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // what a log lacks at its end is no reason to fail
	if err := do(job, ctx); err != nil {
		return w.redact(err)
	}
	return nil
}

func (w roleRun) remount(ctx context.Context) error {
	if len(w.node.Mounts) == 0 {
		return nil
	}
	r, ok := w.engine.(engine.Remounter)
	if ok {
		return r.Remount(ctx, w.node)
	}
	record, err := w.recorded(w.node)
	if err == nil && !slices.Equal(record.Mounts, w.node.Mounts) { // else no plan asks for that
		return problem.New(problem.Surprise, "node %s: the engine %s cannot change the volumes of a running node",
			w.node.Name, w.node.Engine).Try("plan again")
	}
	return err
}

// removeFormerCopies removes the copies of volumes that a node had before it got the volumes themselves.
// They are outdated, and are left if a run was killed before it could remove them.
func (w roleRun) removeFormerCopies() error {
	for _, m := range w.node.Mounts {
		if m.Copy != spec.NoCopy || m.Shared {
			continue
		}
		if err := w.Backends.Volumes.Drop(w.node, m); err != nil {
			return err
		}
	}
	return nil
}

// invalidateState records that it is unknown which services of a node run, and that the node may do what
// only a live node does. It is called before services stop or start. If this process is killed
// before settle, the node will be configured again.
func (w roleRun) invalidateState(ctx context.Context) error {
	record, err := w.recorded(w.node)
	if err != nil {
		return err
	}
	err = w.run().note(w.node.ID, func(p *progress) {
		if p.Configured == nil {
			p.Configured = &record.Configured
		}
	})
	if err != nil {
		return err
	}
	return w.mark(ctx, engine.Progress{Config: record.Config, Proven: record.Proven, ProvenAt: record.ProvenAt,
		Active: record.Active ||
			!w.node.Staged})
}

// recordState records that the state of the services is known again, and whether the node does what only
// a live node does. It records does as the active parts, or leaves them as they are if does is nil.
func (w roleRun) recordState(ctx context.Context, active bool, does spec.PartDigests) error {
	record, err := w.recorded(w.node)
	if err != nil {
		return err
	}
	config := record.Config
	if does != nil {
		config.Active = does
	}
	came, err := w.run().progress(w.node.ID)
	if err != nil {
		return err
	}
	configured := record.Configured
	if came.Configured != nil {
		configured = *came.Configured
	}
	err = w.mark(ctx, engine.Progress{Configured: configured, Config: config, Proven: record.Proven,
		ProvenAt: record.ProvenAt,
		Active:   active})
	if err != nil {
		return err
	}
	return w.run().note(w.node.ID, func(p *progress) { p.Configured = nil })
}
