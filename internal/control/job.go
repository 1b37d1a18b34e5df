package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"orrery/internal/apply"
	"orrery/internal/control/unattended"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/pack"
	"orrery/internal/plan/wayback"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/text/alike"
	"orrery/internal/text/humanize"
)

// A Job is one change of a site on its hosts: it observes the hosts, plans, asks for consent, and
// applies the plan.
type Job struct {
	Session  *Session
	Site     *site.Site
	Hosts    *apply.Fleet
	Do       Operation
	Undo     bool       // undo all steps if one fails
	Base     *site.Site // the site to which an interrupted switch is recovered, or nil to leave the switch as it is
	Restores bool       // complete a restore that was interrupted
	Backup   string     // the backup that this job restores, or "" if it is not a restore
	Parallel int        // maximum number of concurrent steps, or 0 for DefaultParallel
}

func (j *Job) parallel() int {
	if j.Parallel > 0 {
		return j.Parallel
	}
	return DefaultParallel()
}

// Run runs the job. It returns the result of the plan, or nil if there was nothing to do.
func (j *Job) Run(ctx context.Context) (*apply.Result, error) {
	if err := j.Session.CatchUp(ctx, j.Site, j.Hosts); err != nil {
		return nil, err
	}
	letGo, err := j.Session.LockSite(ctx, j.Site, j.Hosts)
	if err != nil {
		return nil, err
	}
	defer func() { letGo() }()
	if err := j.Hosts.Sweep(ctx); err != nil {
		return nil, err
	}
	var cut sync.WaitGroup // ask a remote host both questions at once
	cut.Go(func() { j.Session.Connector(j.Site).ReportInterruptedRestore(ctx, j.Hosts) })
	late, left, err := j.Hosts.Records().Sync(ctx)
	cut.Wait()
	for _, name := range late {
		j.Session.Notice(j.Site.Key(), "host %s had outdated records of live releases; they were updated", name)
	}
	if err != nil {
		return nil, err
	}
	if left != nil {
		j.Session.Trouble(j.Site.Key(), left)
	}
	j.reportWarnings()
	seen, err := j.recover(ctx)
	if err != nil {
		return nil, err
	}
	before := spec.Digest(observe.StableState(seen))
	p, err := j.plan(ctx, seen)
	if err != nil {
		return nil, err
	}
	for _, warning := range p.Warnings {
		j.Session.Notice(j.Site.Key(), "%s", warning)
	}
	if p.Empty() {
		// a run that was killed may not have saved the boot plans
		j.saveBootPlans(ctx, func(context.Context) ([]observe.Host, error) { return seen, nil })
		return nil, j.endRestore(ctx, seen)
	}
	if err := j.checkUnfinished(seen, p); err != nil {
		return nil, err
	}
	if letGo, err = j.consent(ctx, p, before, letGo); err != nil {
		return nil, err
	}
	if err := j.Do.Begin(ctx); err != nil {
		return nil, err
	}
	r, err := j.apply(ctx, p)
	defer j.saveBootPlans(context.WithoutCancel(ctx), j.Hosts.Observe) // even if applying the plan failed
	if err == nil {
		err = j.Do.Commit(ctx)
	}
	if err == nil {
		err = j.renewRollbackPlans(ctx, seen)
	}
	if err == nil {
		err = j.endRestore(ctx, seen)
	}
	return r, err
}

// recover completes a restore and a switch that were interrupted, and returns the state of the
// hosts after that.
func (j *Job) recover(ctx context.Context) ([]observe.Host, error) {
	seen, err := j.Session.Observe(ctx, j.Hosts)
	if err != nil {
		return nil, err
	}
	if seen, err = j.advanceRestore(ctx, seen); err != nil {
		return nil, err
	}
	if done, err := j.recoverSwitch(ctx); err != nil || !done {
		return seen, err
	}
	return j.Session.Observe(ctx, j.Hosts)
}

// saveBootPlans saves on each host the plan that it carries out on its own after a reboot, made from the
// current state. A host that has no up-to-date plan does not start changed nodes after a reboot.
func (j *Job) saveBootPlans(ctx context.Context, look func(context.Context) ([]observe.Host, error)) {
	s := j.Site
	if j.Base != nil {
		s = j.Base
	}
	if s.Stage != 0 {
		return
	}
	if err := unattended.SaveBootPlans(ctx, j.Session.Connector(s), j.Hosts, look); err != nil {
		j.Session.Notice(s.Key(), "hosts may not start all nodes by themselves after a reboot: %v", err)
	}
}

// renewRollbackPlans updates the rollback plans of hosts on which a release is on trial, based on their
// current state.
func (j *Job) renewRollbackPlans(ctx context.Context, seen []observe.Host) error {
	if j.Base == nil || seen[0].Releases.Trial == nil || j.Site.Stage != 0 {
		// a trial that has just begun has its rollback plans, and a staged release is not part of
		// them
		return nil
	}
	r, err := j.Hosts.Records().Read(ctx)
	if err != nil || r.Trial == nil || r.Switch != nil || r.Trial.Boot != host.Now().Boot &&
		j.Session.Connector(j.Site).DecidesTrials() {
		// see overdue.ResumeTrial
		return err
	}
	if err := j.Session.Connector(j.Site).Releases(j.Hosts).LoadReleases(ctx, r.Trial.Back); err != nil {
		return err
	}
	_, err = unattended.SaveRollbackPlans(ctx, j.Session.Connector(j.Site), j.Hosts, r.Trial, j.Hosts.Views().Sites())
	return err
}

// consent asks the caller for consent to a plan. While it waits for an answer, other processes can
// take the site's lock. After that, consent takes the lock again and returns an error if the hosts
// have changed since the plan was made. It returns the function that releases the lock from then
// on.
func (j *Job) consent(ctx context.Context, p *plan.Plan, before string, letGo func()) (func(), error) {
	once := sync.OnceFunc(letGo)
	b := *j.Session
	b.Confirmer = unlockingConfirmer{b.Confirmer, once}
	asked, err := j.Do.Confirm(&b, p)
	if err != nil || !asked {
		return once, err
	}
	once()
	again, err := j.Session.LockSite(ctx, j.Site, j.Hosts)
	if err != nil {
		return once, err
	}
	return again, j.checkUnchanged(ctx, before)
}

// plan makes the plan of the job from the observed state, and records on which hosts the plan
// places the nodes.
func (j *Job) plan(ctx context.Context, seen []observe.Host) (*plan.Plan, error) {
	p, err := j.Do.Plan(ctx, seen)
	if err != nil {
		return nil, j.Hosts.Views().Explain(err)
	}
	j.Hosts.Views().SetHomes(p.Homes)
	return p, nil
}

// checkUnchanged returns a Surprise problem if the hosts have changed since the plan was shown.
func (j *Job) checkUnchanged(ctx context.Context, before string) error {
	hosts, err := j.Session.Observe(ctx, j.Hosts)
	if err != nil {
		return err
	}
	if spec.Digest(observe.StableState(hosts)) != before {
		return problem.New(problem.Surprise, "the site has changed since the plan was made; nothing was done").
			Try("run the same command again")
	}
	return nil
}

// apply carries out a plan, keeps the journal, and returns an error that lists the steps that were
// not done.
func (j *Job) apply(ctx context.Context, p *plan.Plan) (*apply.Result, error) {
	record, err := beginJournal(ctx, j.Hosts, j.Session.Command)
	if err != nil {
		return nil, err
	}
	pack.MarkRestarts(p)
	result := record.carryOut(ctx, j.Session.Watcher, j.Hosts, "step", p, j.parallel())
	j.reportWarnings()
	err = j.finish(ctx, record, p, result)
	return result, errors.Join(err, record.end(outcome(err, j.Hosts.Redact)))
}

// reportWarnings reports what hosts did unexpectedly, although no step failed because of it.
func (j *Job) reportWarnings() {
	for _, doubt := range j.Hosts.Warnings() {
		j.Session.Notice(j.Site.Key(), "%s", doubt)
	}
}

// finish settles a run that succeeded. If the run failed, finish undoes its steps or explains what
// is left.
func (j *Job) finish(ctx context.Context, record *JournalWriter, p *plan.Plan, r *apply.Result) error {
	if r.OK() {
		return j.Hosts.DiscardUndo(ctx, r.Done)
	}
	if back, ok := j.Do.(Reverter); ok {
		j.reportFailures("", r.Failed)
		return j.revert(back, record, p, r)
	}
	if ctx.Err() != nil && !j.Undo {
		return problem.New(problem.Interrupted, "interrupted: %d of %d steps are done; not done: %s", len(r.Done),
			len(p.Steps), unfinishedTitles(r)).
			Try("run the same command to resume, or orrery down")
	}
	j.reportFailures("", r.Failed)
	if j.Undo {
		return j.undoSteps(record, p, r)
	}
	if len(p.Batches) > 0 {
		j.restoreBatch(record, p, r)
	}
	kind := problem.Left
	if !slices.ContainsFunc(r.Failed, func(f apply.Failure) bool {
		return problem.ExitCode(f.Err) != int(problem.Unable)
	}) {
		kind = problem.Unable // trying again cannot succeed
	}
	return problem.New(kind, "%d of %d steps are done; not done: %s", len(r.Done), len(p.Steps), unfinishedTitles(r)).
		Try("fix the cause and run the same command to resume")
}

// revert observes the hosts after a failure and carries out the plan of the operation's Revert.
// Ctrl-C does not interrupt it.
func (j *Job) revert(of Reverter, record *JournalWriter, p *plan.Plan, r *apply.Result) error {
	const cure = "orrery plan shows what is left; orrery up or the same command completes it"
	seen, err := j.Session.Observe(context.Background(), j.Hosts)
	if err != nil {
		return errors.Join(err, problem.New(problem.Left, "%d of %d steps are done", len(r.Done), len(p.Steps)).Try(cure))
	}
	back, err := of.Revert(seen, p)
	if err != nil {
		return errors.Join(err, problem.New(problem.Left, "%d of %d steps are done", len(r.Done), len(p.Steps)).Try(cure))
	}
	j.Hosts.Views().SetHomes(back.Homes)
	undone := record.carryOut(context.Background(), j.Session.Watcher, j.Hosts, "undo", back, j.parallel())
	j.reportFailures("undo: ", undone.Failed)
	if !undone.OK() {
		return problem.New(problem.Left, "failed, and the recovery could not complete these steps: %s",
			unfinishedTitles(undone)).Try(cure)
	}
	if err := j.Hosts.DiscardUndo(context.Background(), undone.Done); err != nil {
		j.Session.Trouble(j.Site.Key(), err) // the next run removes what is left
	}
	return problem.New(problem.Undone,
		"failed; each node continues on its former host, or on its new one if it had moved").
		Try("fix the cause and run the same command again")
}

// undoSteps undoes the steps that were done. Ctrl-C does not interrupt it, since a half-finished
// undo is worse than a delay.
func (j *Job) undoSteps(record *JournalWriter, p *plan.Plan, r *apply.Result) error {
	back := wayback.Undo(p, append(r.Done, failedSteps(r)...))
	undone := record.carryOut(context.Background(), j.Session.Watcher, j.Hosts, "undo", back, j.parallel())
	if undone.OK() {
		if err := j.Hosts.DiscardUndo(context.Background(), nil); err != nil {
			j.Session.Trouble(j.Site.Key(), err) // the next run removes what is left
		}
		return problem.New(problem.Undone, "failed; the %d completed steps were undone", len(r.Done)).
			Try("fix the cause and run the same command again")
	}
	j.reportFailures("undo: ", undone.Failed)
	return problem.New(problem.Left, "failed, and these steps could not be undone: %s", unfinishedTitles(undone)).
		Try("orrery plan shows what is left; orrery up resumes, orrery down removes it")
}

// restoreBatch restores the previous state of the nodes in a batch that failed. It only reports its own
// errors, because the run has failed already.
func (j *Job) restoreBatch(record *JournalWriter, p *plan.Plan, r *apply.Result) {
	back, left := wayback.Restore(p, r.Done, failedSteps(r))
	undone := record.carryOut(context.Background(), j.Session.Watcher, j.Hosts, "undo", back, j.parallel())
	j.reportFailures("put back: ", undone.Failed)
	if restored := back.Nodes(); undone.OK() && len(restored) > 0 {
		j.Session.Notice(j.Site.Key(), "restored to their previous state: %s", humanize.List(restored, 12))
	}
	if len(left) > 0 {
		j.Session.Notice(j.Site.Key(), "not restored, because their previous state is lost: %s",
			humanize.List(left, 12))
	}
}

// failedSteps returns the steps that failed. They may have done part of their work.
func failedSteps(r *apply.Result) []*plan.Step {
	var steps []*plan.Step
	for _, f := range r.Failed {
		steps = append(steps, f.Step)
	}
	return steps
}

// unfinishedTitles returns the titles of the steps that a run did not finish.
func unfinishedTitles(r *apply.Result) string {
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
	return humanize.List(names, 8)
}

// reportFailures reports failed steps to the watcher, in the order of the plan, and once what is the same for
// several nodes.
func (j *Job) reportFailures(during string, failed []apply.Failure) {
	failed = slices.SortedFunc(slices.Values(failed), func(a, b apply.Failure) int { return a.Step.N - b.Step.N })
	var all []alike.Message
	for _, f := range failed {
		all = append(all, alike.Parse(fmt.Sprintf("%s: %s: %v", f.Step.Title(), f.Step.Kind.Verb(), f.Err)))
	}
	for _, text := range alike.Merge(all) {
		j.Session.Watcher.Event(Event{Kind: Trouble, Site: j.Site.Key(), Text: during + text})
	}
}
