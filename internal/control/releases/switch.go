package releases

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/register"
	"orrery/internal/control/trial"
	"orrery/internal/control/unattended"
	"orrery/internal/journal/hook"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/release"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/event"
	"orrery/internal/text/humanize"
)

// A switchOp is a switch of a set of nodes to other releases.
type switchOp struct {
	Session *control.Session
	site    *site.Site
	hosts   *apply.Fleet
	to      map[string]int // node name to release
	back    bool           // it goes back to what was live before; if interrupted, it is completed and not undone
	trial   *observe.Trial // the trial that it begins, or nil
	why     string         // why it goes back, for the record of the trial that ends
	// ends, if not nil, is the only trial that the change may end. If that trial is over, the
	// change does nothing. If ends is nil, the change may end any trial.
	ends   *observe.Trial
	before observe.Releases

	live    map[string]int // what was live on these nodes when the switch was planned
	planned *plan.Plan
}

// SwitchOptions say to which release a set of nodes is switched, and whether on trial.
type SwitchOptions struct {
	Release int
	Within  time.Duration // duration of the trial, or 0 for none
	ByHand  bool          // only Confirm ends the trial well, not health checks that hold until its end
}

// Switched is the result of a switch.
type Switched struct {
	Site     string         // key of the site
	To, From map[string]int // node name to release; From has the releases that were live before
	Already  bool           // there was nothing to do
	Took     time.Duration
	Kept     bool           // Rollback returns to what was live before
	Trial    *observe.Trial // the trial that has begun, or nil

	// for a switch on several hosts
	Skew   time.Duration // between the first host that moved its links and the last
	Outage time.Duration // from the first disturbance until all nodes were healthy
}

// Switch makes a staged release live on the selected nodes, or on all staged nodes if there are no
// selectors. It switches all of them or none.
func Switch(ctx context.Context, c *control.Session, s *site.Site, selectors []string, o SwitchOptions) (*Switched,
	error) {
	t, err := switchTo(ctx, c, s, selectors, o.Release)
	if err != nil {
		return nil, err
	}
	o.ByHand = o.ByHand || !c.Connector(s).DecidesTrials() // several hosts cannot agree that all checks hold
	if o.Within > 0 {
		t.trial = &observe.Trial{Release: o.Release, Within: o.Within, ByHand: o.ByHand, Who: control.UserName()}
	}
	if err := control.DoBefore(ctx, c, s, t.hosts, site.BeforeSwitch); err != nil {
		return nil, err
	}
	made, err := t.run(ctx)
	if err != nil || t.trial == nil {
		return made, err
	}
	// even if ctx is cancelled, because the switch is done
	r, err := t.hosts.Records().Read(context.WithoutCancel(ctx))
	made.Trial = r.Trial
	return made, err
}

// Rollback returns to the releases that were live before, on the selected nodes, or on all nodes
// with a former release if there are no selectors.
func Rollback(ctx context.Context, c *control.Session, s *site.Site, selectors []string) (*Switched, error) {
	t, err := newRollback(ctx, c, s, selectors)
	if err != nil {
		return nil, err
	}
	return t.run(ctx)
}

// switchTo prepares a switch of the selected nodes to a release, or of all staged nodes if there
// are no selectors.
func switchTo(ctx context.Context, c *control.Session, s *site.Site, selectors []string, number int) (*switchOp,
	error) {
	t, err := newSwitchOp(ctx, c, s)
	if err != nil {
		return nil, err
	}
	if err := c.Connector(s).Releases(t.hosts).LoadReleases(ctx, map[string]int{"": number}); err != nil {
		return nil, err
	}
	of := t.hosts.Views().Sites()[number]
	if of == nil {
		of = s
	}
	chosen, err := control.SelectNodes(of, selectors)
	if err != nil {
		return nil, err
	}
	present, err := t.instances(ctx, number)
	if err != nil {
		return nil, err
	}
	for _, n := range of.Nodes {
		if chosen[n.Name] || chosen == nil && present[n.Name] {
			t.to[n.Name] = number
		}
	}
	if len(t.to) == 0 {
		return nil, problem.New(problem.Mistake, "release %s has no nodes", site.ReleaseName(number)).
			Try("orrery stage --release %d", number)
	}
	return t, nil
}

func newSwitchOp(ctx context.Context, c *control.Session, s *site.Site) (*switchOp, error) {
	if err := c.CheckAllowedOn(s); err != nil {
		return nil, err
	}
	f, err := c.Hosts(ctx, s)
	if err != nil {
		return nil, err
	}
	before, err := f.Records().Read(ctx)
	return &switchOp{Session: c, site: s, hosts: f, to: map[string]int{}, before: before}, err
}

// instances returns the names of the nodes that have an instance of a release.
func (t *switchOp) instances(ctx context.Context, number int) (map[string]bool, error) {
	all := map[string]bool{}
	for _, h := range t.hosts.All {
		nodes, err := h.Nodes.List(ctx)
		if err != nil {
			return nil, err
		}
		for i := range nodes {
			if nodes[i].Release == number {
				all[nodes[i].Name] = true
			}
		}
	}
	return all, nil
}

// run carries out the switch.
func (t *switchOp) run(ctx context.Context) (*Switched, error) {
	j := &control.Job{Session: t.Session, Site: t.site, Base: t.site, Hosts: t.hosts, Undo: true,
		Parallel: max(control.DefaultParallel(), len(t.to)), Do: t}
	began := time.Now()
	result, err := j.Run(ctx)
	if err != nil {
		err = t.explain(ctx, err, t.live)
		t.notifyFailedSwitch(ctx, err)
		return nil, err
	}
	made := &Switched{Site: t.site.Key(), To: t.to, From: t.live, Already: result == nil, Took: time.Since(began),
		Kept: result != nil && !t.back && len(t.live) > 0}
	if result != nil && len(t.hosts.All) > 1 {
		made.Skew, made.Outage = result.Measured(t.planned)
	}
	if trial := t.before.Trial; result != nil && t.back && trial != nil {
		control.NotifyTrialEnd(ctx, t.Session, t.site, trial.Release, observe.Reverted, t.why)
	}
	return made, nil
}

// Plan returns the steps of the switch.
func (t *switchOp) Plan(ctx context.Context, seen []observe.Host) (*plan.Plan, error) {
	t.before, t.live = seen[0].Releases, liveNow(seen, t.to)
	if err := t.checkAllowed(t.live); err != nil {
		return nil, err
	}
	if err := t.Session.Connector(t.site).Releases(t.hosts).LoadReleases(ctx, t.live); err != nil {
		return nil, err
	}
	if seen = slices.Clone(seen); len(seen) > 1 || t.trial != nil {
		// what is undone on one host is still under way on others
		intent := t.intent(t.live)
		for i := range seen {
			seen[i].Releases.Switch = intent
		}
	}
	p, err := release.Switch(t.site, seen, release.Goal{
		To: t.to, Releases: t.hosts.Views().Sites(), Holds: t.trial != nil, Back: t.back,
		Ended: trial.RollbackRecord(t.before.Trial, t.back, t.why),
	})
	if err == nil && maps.Equal(t.live, t.to) && changesOnlyRecords(p) {
		p.Steps = nil
	}
	t.planned = p
	return p, err
}

// Confirm asks for consent to switch the nodes if the site is in production.
func (t *switchOp) Confirm(c *control.Session, _ *plan.Plan) (asked bool, err error) {
	return c.AskProduction(t.site, fmt.Sprintf("%s would switch from release %s to %s.",
		humanize.Plural(len(t.to), "node"), register.ReleaseNames(t.live), register.ReleaseNames(t.to)))
}

// Begin records which releases the set will have at the end.
func (t *switchOp) Begin(ctx context.Context) error {
	if err := control.MarkUp(t.Session, t.site); err != nil { // the release may be the first of the site that is up
		return err
	}
	if err := t.hosts.MeasureClocks(ctx); err != nil {
		return err
	}
	return t.recordIntent(ctx, t.live)
}

// errTrialOver is returned instead of ending a trial that was confirmed, or has gone back, in the
// meantime.
var errTrialOver = errors.New("the trial is over")

// checkAllowed returns why the switch is not allowed, considering the trial and the live releases, or nil.
func (t *switchOp) checkAllowed(live map[string]int) error {
	on := t.before.Trial
	switch {
	case t.ends != nil && (on == nil || !on.Until.Equal(t.ends.Until)):
		return errTrialOver
	case on != nil && !t.back:
		return problem.New(problem.Mistake, "release %s is on trial until %s", site.ReleaseName(on.Release),
			humanize.Time(on.Until)).At(t.site.Key()).
			Try("run orrery confirm or orrery rollback first")
	case on != nil && len(t.to) < len(on.Back):
		return problem.New(problem.Mistake, "release %s is on trial with %s, which can only go back together",
			site.ReleaseName(on.Release), humanize.Plural(len(on.Back), "node")).At(t.site.Key()).
			Try("run orrery rollback without node names, or orrery confirm, first")
	case t.trial != nil && len(live) < len(t.to):
		return problem.New(problem.Mistake, "the trial of release %s has no live release to go back to",
			site.ReleaseName(t.trial.Release)).At(t.site.Key()).
			Try("switch to it without --confirm-within")
	}
	if t.trial != nil {
		t.trial.Back = live
	}
	return nil
}

// changesOnlyRecords reports whether a plan changes only records.
func changesOnlyRecords(p *plan.Plan) bool {
	return !slices.ContainsFunc(p.Steps, func(s *plan.Step) bool {
		return s.Kind != plan.CommitSwitch &&
			s.Kind != plan.WriteNames
	})
}

// liveNow returns the current releases of those nodes in of that are live.
func liveNow(hosts []observe.Host, of map[string]int) map[string]int {
	live := map[string]int{}
	for i := range hosts {
		for j := range hosts[i].Nodes {
			n := &hosts[i].Nodes[j]
			if _, concerned := of[n.Name]; concerned && !n.Staged {
				live[n.Name] = n.Release
			}
		}
	}
	return live
}

// recordIntent records the target of the switch before anything is changed.
func (t *switchOp) recordIntent(ctx context.Context, live map[string]int) error {
	r := t.before
	r.Switch = t.intent(live)
	return t.hosts.Records().Write(ctx, r)
}

// Commit makes each host watch the trial with its stored plan, and begins the trial.
func (t *switchOp) Commit(ctx context.Context) error {
	if t.trial == nil {
		return nil
	}
	t.hosts.InvalidateLive()
	if err := unattended.BeginTrial(ctx, t.Session.Connector(t.site), t.hosts, t.trial,
		t.hosts.Views().Sites()); err != nil {
		return problem.New(problem.HalfWay, "the release is live, but its trial could not start").At(t.site.Key()).
			Because(err).Try("orrery up returns to the release that was live before")
	}
	return nil
}

// intent returns the record of the switch, including the releases at which an interrupted switch
// ends.
func (t *switchOp) intent(live map[string]int) *observe.Switch {
	end := live
	if t.back || len(live) < len(t.to) { // some nodes had no live release to which they could go back
		end = t.to
	}
	return &observe.Switch{To: t.to, End: end, Who: control.UserName(), Since: time.Now().UTC(), Pid: os.Getpid()}
}

// explain adds to the error of a failed switch at which releases the nodes are. If the switch was
// undone completely, explain removes its record.
func (t *switchOp) explain(ctx context.Context, err error, live map[string]int) error {
	var p *problem.Problem
	if !errors.As(err, &p) {
		return err
	}
	switch p.Kind {
	case problem.Undone:
		if wrong := t.hosts.Records().Write(ctx, t.before); wrong != nil {
			return errors.Join(err, wrong)
		}
		return problem.New(problem.Reverted, "the switch failed; all %s are back at release %s",
			humanize.Plural(len(t.to), "node"), register.ReleaseNames(live)).
			At(t.site.Key()).Try("the messages above say why; orrery logs NODE --release N shows more")
	case problem.Left:
		return t.mixedReleasesError(err)
	}
	return err
}

// mixedReleasesError returns an error that says at which release each node is.
func (t *switchOp) mixedReleasesError(cause error) error {
	hosts, err := t.Session.Observe(context.Background(), t.hosts)
	if err != nil {
		return problem.New(problem.HalfWay,
			"the switch failed and could not be fully undone; the releases of the nodes are unknown").At(t.site.Key()).
			Because(errors.Join(cause, err)).
			Try("when all hosts answer, the next orrery up, switch or rollback first brings the set to one release")
	}
	now := liveNow(hosts, t.to)
	var words []string
	for _, name := range slices.Sorted(maps.Keys(t.to)) {
		text := "none is live"
		if n, ok := now[name]; ok {
			text = site.ReleaseName(n)
		}
		words = append(words, name+": "+text)
	}
	return problem.New(problem.HalfWay, "the switch failed and could not be fully undone; %s", humanize.List(words, 40)).
		At(t.site.Key()).Because(cause).
		Try("fix the cause; the next orrery up, switch or rollback first brings the set to one release")
}

// newRollback prepares a rollback to the former releases.
func newRollback(ctx context.Context, c *control.Session, s *site.Site, selectors []string) (*switchOp, error) {
	t, err := newSwitchOp(ctx, c, s)
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(t.before.Former))
	if len(selectors) > 0 {
		chosen, err := control.SelectNodes(s, selectors)
		if err != nil {
			return nil, err
		}
		names = slices.Sorted(maps.Keys(chosen))
	}
	if len(names) == 0 {
		return nil, problem.New(problem.Mistake, "site %s has no former release to return to", s.Key()).
			Try("orrery release ls lists the releases")
	}
	if t.to, err = release.PreviousReleases(t.before, names); err != nil {
		return nil, err
	}
	t.back, t.why = true, trial.ReasonRolledBack
	return t, c.Connector(s).Releases(t.hosts).LoadReleases(ctx, t.to)
}

// notifyFailedSwitch notifies the hooks of a switch that failed. It skips switches that were refused,
// because they changed nothing.
func (t *switchOp) notifyFailedSwitch(ctx context.Context, err error) {
	result, tried := map[int]string{int(problem.Reverted): observe.Reverted,
		int(problem.HalfWay): "half-way"}[problem.ExitCode(err)]
	if !tried {
		return
	}
	e := hook.Event{Event: event.SwitchFailed, Result: result, Why: t.hosts.Redact(fmt.Sprint(err))}
	for _, number := range t.to {
		e.Release = &number
		break
	}
	t.Session.NotifyHooks(ctx, t.site, e)
}
