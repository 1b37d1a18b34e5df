package local

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/role"
	"orrery/internal/site/render"
	"orrery/internal/site/spec"
)

// stopPatience is how long a node has to shut down in order.
const stopPatience = 90 * time.Second

// start gives a node what it finds at boot, then boots it.
func (h *Host) start(ctx context.Context, e engine.Engine, n *spec.Node) error {
	if err := h.provide(ctx, n); err != nil {
		return err
	}
	if err := h.provideEtc(ctx, n); err != nil && !errors.Is(err, errNoNode) {
		return err
	}
	ref := engine.RefOf(n)
	was, err := h.recorded(n)
	if err != nil {
		return err
	}
	active := was.Active
	if active && n.Staged { // it was live, and stopped before it could be retired
		if err := h.quieten(ctx, e, n); err != nil {
			return err
		}
		active = false
	}
	if was.Proven != "" || was.Active != active { // health is of what ran before
		if err := e.Mark(ctx, ref, engine.Mark{Configured: was.Configured, Config: was.Config, Active: active}); err != nil {
			return err
		}
	}
	if !was.Configured && h.inject(ctx, e, n) == nil {
		h.ready.Store(n.Name, true)
	}
	h.booting.Store(n.ID, true)
	return e.Start(ctx, ref)
}

// quieten lets a node that does not run boot without what only a live node does.
func (h *Host) quieten(ctx context.Context, e engine.Engine, n *spec.Node) error {
	s, declared, err := h.declared(n)
	if err != nil {
		return err
	}
	var units []string
	for _, r := range s.RolesOf(declared) {
		units = append(units, r.Active...)
	}
	if len(units) == 0 {
		return nil
	}
	f, able := e.(engine.Injector)
	if !able {
		return problem.New(problem.Unable, "engine %s cannot let node %s boot without %s, which are for a live node only", n.Engine, n.Name, strings.Join(units, ", ")).
			Try("orrery stage --release %d makes it anew", n.Release)
	}
	return f.Disable(ctx, engine.RefOf(n), units...)
}

// inject writes the files of a node's roles before it boots, which saves going into it afterwards. Where that cannot be
// done they are written once it runs, and what is wrong with them is said then. In a node with volumes a file may belong on one.
func (h *Host) inject(ctx context.Context, e engine.Engine, n *spec.Node) error {
	injector, able := e.(engine.Injector)
	s, declared, err := h.declared(n)
	if !able || err != nil || len(n.Mounts) > 0 {
		return errors.ErrUnsupported
	}
	var files []host.File
	view := render.New(s)
	for _, r := range s.RolesOf(declared) {
		some, err := role.Files(view, r, n.Name)
		if err != nil {
			return err
		}
		files = append(files, some...)
	}
	if len(files) == 0 {
		return nil
	}
	return injector.Inject(ctx, engine.RefOf(n), files...)
}

// restoreNode puts a replaced node back, unless it was never replaced.
func (h *Host) restoreNode(ctx context.Context, e engine.Engine, as *spec.Node) error {
	has, err := h.recorded(as)
	if err == nil && has.Base == as.Base && has.Layer == as.Layer {
		return nil
	}
	keeper, ok := e.(engine.Keeper)
	if !ok {
		return problem.New(problem.Failed, "engine %s keeps nothing of what node %s was before", as.Engine, as.Name)
	}
	return keeper.Restore(ctx, engine.RefOf(as))
}

// configure applies the roles of a node. Before it begins, the node is marked as not configured, so that a run
// that is killed in between is made good by the next.
func (h *Host) configure(ctx context.Context, e engine.Engine, s *plan.Step, say func(string)) error {
	was, err := h.recorded(s.Node)
	if err != nil {
		return err
	}
	ref := engine.RefOf(s.Node)
	before, in := was.Config, e.Runner(ref)
	if was.Configured {
		saved := newSaver(in)
		h.saved.Store(s.Node.Name, saved)
		in = saved
	}
	job, log, err := h.job(e, s.Node, say)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // what a log lacks at its end is no reason to fail
	active := job.Live && role.Holders(job.Site, job.Node)
	if !was.Configured || active && !was.Active {
		before = spec.Config{Services: was.Config.Services} // it is not known which of its parts were applied, and at work
	}
	if err := e.Mark(ctx, ref, engine.Mark{Config: was.Config, Active: active}); err != nil {
		return err
	}
	_, injected := h.ready.LoadAndDelete(s.Node.Name)
	if !injected { // otherwise it has been done in this run, when the node was started
		if err := h.provideEtc(ctx, s.Node); err != nil {
			return err
		}
	}
	job.In, job.Was, job.Injected = in, before, injected && !was.Configured
	if err := job.Configure(ctx); err != nil {
		return h.redact(err)
	}
	h.booting.Delete(s.Node.ID)
	return e.Mark(ctx, ref, engine.Mark{Configured: true, Config: s.Node.Config, Active: active})
}

// job gives what applies the roles of a node, and the log that it writes.
func (h *Host) job(e engine.Engine, spelt *spec.Node, say func(string)) (*role.Job, io.Closer, error) {
	s, n, err := h.declared(spelt)
	if err != nil {
		return nil, nil, err
	}
	log, err := h.log(n.Name)
	if err != nil {
		return nil, nil, err
	}
	return &role.Job{
		Host: h.Name, Starts: h.starts(spelt), Live: !spelt.Staged, Site: s, View: render.New(s), Node: n,
		In: e.Runner(engine.RefOf(spelt)), Is: spelt.Config, Log: log, Say: say,
	}, log, nil
}

// starts gives the services that start when a node boots from its layers.
func (h *Host) starts(n *spec.Node) []string {
	if n.Layer == "" {
		return nil
	}
	r, err := h.Store.Record(n.Layer)
	if err != nil {
		return nil // then they are started as the node is configured
	}
	return r.Starts
}

// revert puts the files back that ConfigureNode has changed in this run.
func (h *Host) revert(ctx context.Context, e engine.Engine, s *plan.Step) error {
	saved, ok := h.saved.Load(s.Subject)
	if !ok {
		return nil // it was not configured before this run: it was new, or in the place of one that comes back
	}
	ref := engine.RefOf(s.Node)
	if err := saved.(*saver).restore(ctx); err != nil {
		return err
	}
	if len(s.Node.Config.Services) > 0 {
		args := append([]string{"systemctl", "restart"}, s.Node.Config.Services...)
		if err := e.Runner(ref).Run(ctx, host.Command{Args: args}); err != nil {
			return err
		}
	}
	was, err := h.recorded(s.Node)
	if err != nil {
		return err
	}
	return e.Mark(ctx, ref, engine.Mark{Configured: true, Config: s.Node.Config, Active: was.Active})
}

// check waits until a node is healthy, and records that it has been.
func (h *Host) check(ctx context.Context, e engine.Engine, n *spec.Node, say func(string)) error {
	s, declared, err := h.declared(n)
	if err != nil {
		return err
	}
	ref := engine.RefOf(n)
	if err := h.awaitBoot(ctx, e, n); err != nil {
		return err
	}
	if err := role.Check(ctx, e.Runner(ref), render.New(s), s, declared, say); err != nil {
		return h.redact(err)
	}
	was, err := h.recorded(n)
	if err != nil {
		return err
	}
	config := was.Config
	config.Health = n.Config.Health
	return e.Mark(ctx, ref, engine.Mark{
		Configured: was.Configured, Config: config, Proven: n.Config.Health, ProvenAt: time.Now().UTC().Truncate(time.Second), Active: was.Active,
	})
}

// awaitBoot waits for the boot of a node that was started in this run as it is: a check may succeed by what is on a volume, before services have started.
func (h *Host) awaitBoot(ctx context.Context, e engine.Engine, n *spec.Node) error {
	if _, starts := h.booting.LoadAndDelete(n.ID); !starts {
		return nil
	}
	log, err := h.log(n.Name)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // what a log lacks at its end is no reason to fail
	_, err = role.AwaitBoot(ctx, e.Runner(engine.RefOf(n)), log)
	return err
}

// recorded gives what the host has on record of a node.
func (h *Host) recorded(n *spec.Node) (*nodedir.Record, error) {
	dir := nodedir.Of(h.Dirs, n.Site, n.ID)
	r, err := dir.Read()
	if err != nil {
		return nil, problem.New(problem.Surprise, "node %s is gone", n.Name).At(dir.Path()).Try("plan again")
	}
	return r, nil
}

// Settle removes what was kept for undoing, once a run has succeeded.
func (h *Host) Settle(ctx context.Context, done []*plan.Step) error {
	for _, s := range done {
		if s.Kind == plan.CommitSwitch {
			if err := h.dropCopies(); err != nil {
				return err
			}
		}
		if s.Kind != plan.ReplaceNode {
			continue
		}
		if keeper, ok := h.Engines[s.Node.Engine].(engine.Keeper); ok {
			if err := keeper.Settle(ctx, engine.RefOf(s.Node)); err != nil {
				return err
			}
		}
	}
	return nil
}

// redact hides the values of secrets in what a command printed.
func (h *Host) redact(err error) error { return &redactedError{err, h.Keys.Redact} }

type redactedError struct {
	err  error
	hide func(string) string
}

func (e *redactedError) Error() string { return e.hide(e.err.Error()) }
func (e *redactedError) Unwrap() error { return e.err }
