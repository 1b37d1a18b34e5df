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

// retire stops on a node what must not run twice, and removes its access to the volumes that only
// one node may use.
func (w work) retire(ctx context.Context) error {
	if err := w.unsettle(ctx); err != nil {
		return err
	}
	if err := w.apply(ctx, (*role.Job).Retire); err != nil {
		return err
	}
	if err := w.remount(ctx); err != nil {
		return err
	}
	if err := w.dropFormer(); err != nil {
		return err
	}
	return w.settle(ctx, false, nil)
}

// take replaces a quarantined node's copies of volumes by the volumes. Services start when the node
// is live.
func (w work) take(ctx context.Context) error {
	if err := w.unsettle(ctx); err != nil {
		return err
	}
	if err := w.apply(ctx, (*role.Job).Let); err != nil {
		return err
	}
	if err := w.life.provide(ctx, w.node); err != nil {
		return err
	}
	return w.remount(ctx)
}

// giveBack undoes take.
func (w work) giveBack(ctx context.Context) error {
	if err := w.take(ctx); err != nil {
		return err
	}
	if err := w.apply(ctx, (*role.Job).Resume); err != nil {
		return err
	}
	return w.settle(ctx, false, nil)
}

// activate does on a node what only a live node does. The record is written before it begins.
func (w work) activate(ctx context.Context) error {
	if err := w.remount(ctx); err != nil {
		return err
	}
	if err := w.unsettle(ctx); err != nil {
		return err
	}
	if err := w.apply(ctx, (*role.Job).Activate); err != nil {
		return err
	}
	var all []*site.Role
	for i := range w.duties.Roles {
		all = append(all, w.duties.Roles[i].Role)
	}
	return w.settle(ctx, true, spec.Active(all))
}

// apply does a part of what the roles of a node ask for.
func (w work) apply(ctx context.Context, do func(*role.Job, context.Context) error) error {
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

func (w work) remount(ctx context.Context) error {
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

// dropFormer removes the copies of volumes that a node had before it got the volumes themselves.
// They are outdated, and are left if a run was killed before it could remove them.
func (w work) dropFormer() error {
	for _, m := range w.node.Mounts {
		if m.Copy != spec.NoCopy || m.Shared {
			continue
		}
		if err := w.Ground.Volumes.Drop(w.node, m); err != nil {
			return err
		}
	}
	return nil
}

// unsettle records that it is unknown which services of a node run, and that the node may do what
// only a live node does. It is called before services stop or start. If this process is killed
// before settle, the node will be configured again.
func (w work) unsettle(ctx context.Context) error {
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
	return w.mark(ctx, engine.Mark{Config: record.Config, Proven: record.Proven, ProvenAt: record.ProvenAt,
		Active: record.Active ||
			!w.node.Staged})
}

// settle records that the state of the services is known again, and whether the node does what only
// a live node does. It records does as the active parts, or leaves them as they are if does is nil.
func (w work) settle(ctx context.Context, active bool, does spec.Parts) error {
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
	err = w.mark(ctx, engine.Mark{Configured: configured, Config: config, Proven: record.Proven, ProvenAt: record.ProvenAt,
		Active: active})
	if err != nil {
		return err
	}
	return w.run().note(w.node.ID, func(p *progress) { p.Configured = nil })
}
