package local

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/role"
	"orrery/internal/site"
	"orrery/internal/site/distro"
	"orrery/internal/site/inventory"
	"orrery/internal/site/spec"
)

// roles works on running nodes.
type roles struct {
	*SiteState
	names     *names
	lifecycle *lifecycle
}

// roleRun is the work on one running node.
type roleRun struct {
	*roles
	engine engine.Engine
	node   *spec.Node
	duties *spec.RoleActions
	say    func(string)
}

func (w roleRun) ref() engine.Ref { return engine.RefOf(w.node) }

func (w roleRun) run() run { return runOf(w.Dirs, w.Key) }

func (w roleRun) mark(ctx context.Context, m engine.Progress) error {
	return w.engine.SetProgress(ctx, w.ref(), m)
}

// recordFailure stores that a step failed on a node and why, or that it succeeded, so that its status
// shows more than that the node is not configured. It returns err.
func (w roleRun) recordFailure(ctx context.Context, step plan.Kind, err error) error {
	results, name := nodedir.Of(w.Dirs, w.Key, w.node.ID).Results(), string(step)
	if step == plan.RepairNode {
		name = "repair" // as users know it
	}
	switch {
	case ctx.Err() != nil: // an interrupted step says nothing about the node
	case err == nil:
		_ = results.StoreFailure(nil) // it is shown only while the node is not configured or not proven
	default:
		_ = results.StoreFailure(&observe.StepFailure{Step: name, At: time.Now().UTC().Truncate(time.Second),
			Found: w.Secrets.Redact(shortError(err))})
	}
	return err
}

// configure applies the roles of a node. It first marks the node as not configured, so that the
// next run repeats the work of one that was killed.
func (w roleRun) configure(ctx context.Context, tell *inventory.PeerInfo) error {
	record, err := w.recorded(w.node)
	if err != nil {
		return err
	}
	if w.node.Disk.Guest == site.NoGuest { // the node runs, and nothing else can be done with it
		return w.mark(ctx, engine.Progress{Configured: true, Config: w.node.Config})
	}
	job, log, err := w.job()
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // what a log lacks at its end is no reason to fail
	if record.Configured {
		if err := w.run().startSaving(w.node.ID); err != nil {
			return err
		}
		job.In = role.NewSavingRunner(job.In, func(s role.Saved) error { return w.run().saveFiles(w.node.ID, s) })
	}
	active := job.Live && role.NeedsActivation(w.duties)
	job.Was = record.Config
	if !record.Configured || active && !record.Active {
		// it is unknown which of its parts were applied and run
		job.Was = spec.Config{Services: record.Config.Services}
	}
	if err := w.mark(ctx, engine.Progress{Config: record.Config, Active: active}); err != nil {
		return err
	}
	if err := nodedir.Of(w.Dirs, w.Key, w.node.ID).Results().ForgetProbe(); err != nil {
		return err
	}
	came, err := w.run().progress(w.node.ID)
	if err != nil {
		return err
	}
	if !came.Injected { // otherwise it was done in this run when the node was started
		if err := w.names.provideEtc(ctx, w.node, w.duties, tell); err != nil {
			return err
		}
	}
	if err := w.names.copyEtc(ctx, w.engine, w.node); err != nil {
		return err
	}
	job.Injected = came.Injected && !record.Configured
	if err := w.run().note(w.node.ID, func(p *progress) { p.Injected = false }); err != nil {
		return err
	}
	if err := job.Configure(ctx); err != nil {
		return w.redact(err)
	}
	if err := w.run().note(w.node.ID, func(p *progress) { p.Booting = false }); err != nil {
		return err
	}
	return w.mark(ctx, engine.Progress{Configured: true, Config: w.node.Config, Active: active})
}

// job returns the job that applies the roles of a node, and its log.
func (w roleRun) job() (*role.Job, io.Closer, error) {
	log, err := w.log(w.node.Name)
	if err != nil {
		return nil, nil, err
	}
	return &role.Job{
		Host: w.Name, Starts: w.starts(), Live: !w.node.Staged, Duties: w.duties,
		In: w.engine.Runner(w.ref()), Is: w.node.Config, Log: log, Say: w.say, BootTimeout: w.bootTimeout(),
	}, log, nil
}

// bootTimeout returns how long the node may take to boot.
func (w roleRun) bootTimeout() time.Duration {
	if w.engine.Capabilities().Accel == observe.TCG {
		return engine.EmulationFactor * role.BootTimeout
	}
	return role.BootTimeout
}

// starts returns the services that start when a node boots from its layers.
func (w roleRun) starts() []string {
	if w.node.Layer == "" {
		return nil
	}
	r, err := w.Backends.Layers.Record(w.node.Layer)
	if err != nil {
		return nil // they are started when the node is configured
	}
	return r.Starts
}

// revert restores the files of a node that were changed when it was configured.
func (r *roles) revert(ctx context.Context, e engine.Engine, n *spec.Node) error {
	all, known, err := runOf(r.Dirs, r.Key).savedFiles(n.ID)
	if err != nil || !known {
		// it was not configured before this run: it was new, or replaces a node that will be
		// restored
		return err
	}
	ref := engine.RefOf(n)
	if err := role.Restore(ctx, e.Runner(ref), all); err != nil {
		return err
	}
	record, err := r.recorded(n)
	if err != nil {
		return err
	}
	if services := n.Config.Running(record.Active); len(services) > 0 {
		args := slices.Concat(distro.OrDefault(n.Distribution).Services.Restart, services)
		if err := e.Runner(ref).Run(ctx, host.Command{Args: args}); err != nil {
			return err
		}
	}
	return e.SetProgress(ctx, ref, engine.Progress{Configured: true, Config: n.Config, Active: record.Active})
}

// check waits until a node is healthy, and records that.
func (w roleRun) check(ctx context.Context) error {
	if err := w.waitForBoot(ctx); err != nil {
		return err
	}
	if err := role.Check(ctx, w.engine.Runner(w.ref()), w.duties, w.say); err != nil {
		return w.redact(err)
	}
	record, err := w.recorded(w.node)
	if err != nil {
		return err
	}
	config := record.Config
	config.Health = w.node.Config.Health
	return w.mark(ctx, engine.Progress{
		Configured: record.Configured, Config: config, Proven: w.node.Config.Health, ProvenAt: time.Now().UTC().
				Truncate(time.Second), Active: record.Active,
	})
}

// waitForBoot waits until a node that was started in this run without being configured has booted.
// Otherwise a check could succeed because of data on a volume before services have started.
func (w roleRun) waitForBoot(ctx context.Context) error {
	came, err := w.run().progress(w.node.ID)
	if err != nil || !came.Booting || w.node.Disk.Guest == site.NoGuest {
		// it is unknown when a node without a guest agent has booted
		return err
	}
	log, err := w.log(w.node.Name)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // what a log lacks at its end is no reason to fail
	if _, err = role.WaitForBoot(ctx, w.engine.Runner(w.ref()), distro.OrDefault(w.node.Distribution).Services,
		w.bootTimeout(), log); err != nil {
		return err
	}
	return w.run().note(w.node.ID, func(p *progress) { p.Booting = false })
}

// repair repairs what has drifted. Until it ends, the node is marked as not configured and its health
// is forgotten. So the next run repairs the node if this one is killed, whether or not that run
// checks for drift.
func (w roleRun) repair(ctx context.Context, all []observe.Drift) error {
	record, err := w.recorded(w.node)
	if err != nil {
		return err
	}
	if err := w.mark(ctx, engine.Progress{Config: record.Config, Active: record.Active}); err != nil {
		return err
	}
	if err := w.restoreLayerFiles(ctx, all); err != nil {
		return problem.New(problem.Failed, "files from the layers of node %s could not be restored", w.node.Name).Because(err).
			Try("look at these files in the node; orrery down %s and orrery up recreate it", w.node.Name)
	}
	if err := w.apply(ctx, func(j *role.Job, ctx context.Context) error { return j.Repair(ctx, all) }); err != nil {
		return err
	}
	return w.mark(ctx, engine.Progress{Configured: record.Configured, Config: record.Config, Active: record.Active})
}

// restoreLayerFiles restores files of the layers that a node has deleted or changed.
func (w roleRun) restoreLayerFiles(ctx context.Context, all []observe.Drift) error {
	rendered := map[string]bool{}
	for i := range w.duties.Roles {
		for _, f := range w.duties.Roles[i].Rendered {
			rendered[f.Path] = true
		}
	}
	all = slices.DeleteFunc(slices.Clone(all), func(d observe.Drift) bool {
		return d.Kind != observe.DriftProgram && (d.Kind != observe.DriftFile || rendered[d.Subject])
	})
	if len(all) == 0 {
		return nil
	}
	return w.withNodeFS(w.engine, w.node, func(in nodeFS) error {
		to, err := in.root.WithoutMounts() // without anything that the node has mounted over it
		if err != nil {
			return err
		}
		defer to.Close()
		for _, d := range all {
			w.say(d.Subject + " from its layer")
			err = errors.Join(err, in.layers.Restore(ctx, to, in.first, d.Subject))
		}
		return err
	})
}
