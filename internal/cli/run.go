package cli

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"orrery/internal/apply"
	"orrery/internal/apply/local"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A job is one change of a site on this host: observe, plan, ask, apply.
type job struct {
	*app
	site     *site.Site
	host     *local.Host
	plan     func([]observe.Host) (*plan.Plan, error)
	probe    func([]observe.Host) error // looks for more than is on record; nil: nobody does
	ask      func(*plan.Plan) error     // before anything is done; nil: nothing to ask
	begin    func() error               // when there is something to do; nil: nothing
	undo     bool                       // take everything back if anything fails
	base     *site.Site                 // to which a switch is recovered that was interrupted; nil: it is left as it is
	restores bool                       // it may go on with a restore that was interrupted
	parallel int
}

// defaultParallel is how many steps are under way at once. Steps mostly wait for disks and for systemd, so there are more of them than processors.
func defaultParallel() int { return max(8, 4*runtime.NumCPU()) }

// run does the job. It gives the result of the plan, or nil if there was nothing to do.
func (j *job) run(ctx context.Context) (*apply.Result, error) {
	if err := j.catchUp(ctx, j.site, j.host); err != nil {
		return nil, err
	}
	letGo, err := j.hold(ctx, j.site)
	if err != nil {
		return nil, err
	}
	defer letGo()
	if err := j.host.Sweep(ctx); err != nil {
		return nil, err
	}
	if err := j.recoverSwitch(ctx); err != nil {
		return nil, err
	}
	p, before, err := j.look(ctx)
	if err != nil || p.Empty() {
		return nil, err
	}
	if err := j.unfinished(p); err != nil {
		return nil, err
	}
	if j.ask != nil {
		if err := j.ask(p); err != nil {
			return nil, err
		}
	}
	if j.asked { // and time has passed
		if err := j.unchanged(ctx, before); err != nil {
			return nil, err
		}
	}
	if j.begin != nil {
		if err := j.begin(); err != nil {
			return nil, err
		}
	}
	return j.apply(ctx, p)
}

func (j *job) look(ctx context.Context) (*plan.Plan, string, error) {
	hosts, err := j.seen(ctx, j.host)
	if err != nil {
		return nil, "", err
	}
	before := spec.Digest(hosts)
	if j.probe != nil {
		if err := j.probe(hosts); err != nil {
			return nil, "", err
		}
	}
	p, err := j.plan(hosts)
	return p, before, err
}

// unchanged stops the run if the host is not as it was when the plan was shown.
func (j *job) unchanged(ctx context.Context, before string) error {
	hosts, err := j.seen(ctx, j.host)
	if err != nil {
		return err
	}
	if spec.Digest(hosts) != before {
		return problem.New(problem.Surprise, "this host has changed since the plan was made; nothing was done").Try("run it again")
	}
	return nil
}

// apply carries out a plan, keeps the journal, and says what is left if not all of it could be done.
func (j *job) apply(ctx context.Context, p *plan.Plan) (*apply.Result, error) {
	record, err := j.app.begin(j.site, j.command)
	if err != nil {
		return nil, err
	}
	result := record.carryOut(ctx, j.err, j.host, "step", p, j.parallel)
	err = j.finish(ctx, record, p, result)
	return result, errors.Join(err, record.end(outcome(err, j.host.Keys.Redact)))
}

// finish settles a run that succeeded, and takes back or explains one that did not.
func (j *job) finish(ctx context.Context, record *account, p *plan.Plan, r *apply.Result) error {
	if r.OK() {
		return j.host.Settle(ctx, r.Done)
	}
	if ctx.Err() != nil && !j.undo {
		return problem.New(problem.Interrupted, "interrupted: %d of %d steps are done; left are: %s", len(r.Done), len(p.Steps), subjects(r)).
			Try("run the same command to go on, or orrery down")
	}
	for _, f := range r.Failed {
		fmt.Fprintf(j.err, "orrery: %s: %s: %v\n", f.Step.Title(), f.Step.Kind, f.Err)
	}
	if j.undo {
		return j.takeBack(record, p, r)
	}
	if len(p.Batches) > 0 {
		j.putBack(record, p, r)
	}
	kind, left := problem.Left, len(r.Failed)+len(r.Skipped)
	if !slices.ContainsFunc(r.Failed, func(f apply.Failure) bool { return problem.Exit(f.Err) != int(problem.Unable) }) {
		kind = problem.Unable // whoever tries again gets no further
	}
	return problem.New(kind, "%d of %d steps are done; left are %d: %s", len(r.Done), len(p.Steps), left, subjects(r)).
		Try("mend the cause and run the same command to go on")
}

// takeBack undoes what was done. It is not interrupted by Ctrl-C: half undone is worse than late.
func (j *job) takeBack(record *account, p *plan.Plan, r *apply.Result) error {
	back := plan.Undo(p, append(r.Done, failedSteps(r)...))
	undone := record.carryOut(context.Background(), j.err, j.host, "undo", back, j.parallel)
	if undone.OK() {
		return problem.New(problem.Undone, "failed, and the %d steps that had been done were taken back", len(r.Done)).
			Try("mend the cause and run the same command")
	}
	for _, f := range undone.Failed {
		fmt.Fprintf(j.err, "orrery: undo: %s: %s: %v\n", f.Step.Title(), f.Step.Kind, f.Err)
	}
	return problem.New(problem.Left, "failed, and not all of it could be taken back: %s", subjects(undone)).
		Try("orrery plan shows what is left; orrery up goes on, orrery down clears")
}

// putBack lets the nodes of a batch that failed be what they were. What of that fails is said: the run has failed already.
func (j *job) putBack(record *account, p *plan.Plan, r *apply.Result) {
	back, left := plan.PutBack(p, r.Done, failedSteps(r))
	undone := record.carryOut(context.Background(), j.err, j.host, "undo", back, j.parallel)
	for _, f := range undone.Failed {
		fmt.Fprintf(j.err, "orrery: put back: %s: %s: %v\n", f.Step.Title(), f.Step.Kind, f.Err)
	}
	if restored := back.Nodes(); undone.OK() && len(restored) > 0 {
		fmt.Fprintf(j.err, "orrery: as before again: %s\n", shortList(restored, 12))
	}
	if len(left) > 0 {
		fmt.Fprintf(j.err, "orrery: left as they are, because what they were cannot come back: %s\n", shortList(left, 12))
	}
}

// failedSteps gives the steps that failed: they may have done a part of their work.
func failedSteps(r *apply.Result) []*plan.Step {
	var steps []*plan.Step
	for _, f := range r.Failed {
		steps = append(steps, f.Step)
	}
	return steps
}

// subjects names what a run did not finish.
func subjects(r *apply.Result) string {
	seen := map[string]bool{}
	var names []string
	add := func(s *plan.Step) {
		if title := s.Title(); !seen[title] {
			seen[title] = true
			names = append(names, title)
		}
	}
	for _, f := range r.Failed {
		add(f.Step)
	}
	for _, s := range r.Skipped {
		add(s)
	}
	return shortList(names, 8)
}
