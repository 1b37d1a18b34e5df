package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"orrery/internal/apply/local"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/release"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// A turn is a switch of a set of nodes to other releases.
type turn struct {
	*app
	site    *site.Site
	host    *local.Host
	to      map[string]int // node -> release
	back    bool           // to what was live before; interrupted, it is brought to its end and not taken back
	trial   *observe.Trial // that it begins; nil: none
	why     string         // it goes back: for the record of a trial that ends so
	ends    *observe.Trial // the one that it ends, and nothing if that is over; nil: whatever is on trial
	consent consent
	before  observe.Releases
}

// turnTo prepares a switch of the nodes that selectors mean (none: all that are staged) to a release.
func (a *app) turnTo(s *site.Site, selectors []string, number int) (*turn, error) {
	t, err := a.newTurn(s)
	if err != nil {
		return nil, err
	}
	if err := a.loadReleases(t.host, map[string]int{"": number}); err != nil {
		return nil, err
	}
	of := sitesOf(t.host)[number]
	if of == nil {
		of = s
	}
	chosen, err := choose(of, selectors)
	if err != nil {
		return nil, err
	}
	there, err := t.instances(number)
	if err != nil {
		return nil, err
	}
	for _, n := range of.Nodes {
		if chosen[n.Name] || chosen == nil && there[n.Name] {
			t.to[n.Name] = number
		}
	}
	if len(t.to) == 0 {
		return nil, problem.New(problem.Mistake, "no node of release %s is on this host", site.ReleaseName(number)).Try("orrery stage --release %d", number)
	}
	return t, nil
}

func (a *app) newTurn(s *site.Site) (*turn, error) {
	if err := needRoot(); err != nil {
		return nil, err
	}
	h, err := a.here(s)
	if err != nil {
		return nil, err
	}
	before, err := h.ReadReleases()
	return &turn{app: a, site: s, host: h, to: map[string]int{}, before: before}, err
}

// instances gives the names of nodes of which there is an instance of a release.
func (t *turn) instances(number int) (map[string]bool, error) {
	all := map[string]bool{}
	for _, e := range t.host.Engines {
		nodes, err := e.List(context.Background(), t.site.Key())
		if err != nil {
			return nil, err
		}
		for _, n := range nodes {
			if n.Release == number {
				all[n.Name] = true
			}
		}
	}
	return all, nil
}

// run makes the switch.
func (t *turn) run(ctx context.Context) error {
	var live map[string]int
	j := &job{app: t.app, site: t.site, base: t.site, host: t.host, undo: true, parallel: max(defaultParallel(), len(t.to)),
		plan: func(hosts []observe.Host) (*plan.Plan, error) {
			t.before, live = hosts[0].Releases, liveNow(hosts, t.to)
			if err := t.mayTurn(live); err != nil {
				return nil, err
			}
			if err := t.loadReleases(t.host, live); err != nil {
				return nil, err
			}
			p, err := release.Switch(t.site, hosts, release.Goal{
				To: t.to, Releases: sitesOf(t.host), Trial: t.trial, Back: t.back, Ended: wentBack(t.before.Trial, t.back, t.why),
			})
			if err == nil && maps.Equal(live, t.to) && onlyRecords(p) {
				p.Steps = nil
			}
			return p, err
		},
		ask: func(p *plan.Plan) error {
			return t.askProduction(t.site, fmt.Sprintf("%s would go from release %s to %s.", count(len(t.to), "node"), at(live), at(t.to)), t.consent)
		},
		begin: func() error {
			if err := t.markUp(t.site); err != nil { // its first release may be the first of it that is up
				return err
			}
			return t.intend(live)
		},
	}
	began := time.Now()
	result, err := j.run(ctx)
	if err != nil {
		err = t.explain(err, live)
		t.tellFailedSwitch(err)
		return err
	}
	if result == nil {
		fmt.Fprintf(t.out, "%s: release %s is live already.\n", t.site.Key(), at(t.to))
		return nil
	}
	fmt.Fprintf(t.out, "%s: %s at release %s, formerly %s, switched in %s.\n",
		t.site.Key(), count(len(t.to), "node"), at(t.to), at(live), time.Since(began).Round(time.Millisecond))
	if !t.back && len(live) > 0 {
		fmt.Fprintln(t.out, "What was live before is kept: orrery rollback returns to it.")
	}
	if trial := t.before.Trial; t.back && trial != nil {
		t.tellTrialEnd(t.site, trial.Release, observe.Reverted, t.why)
	}
	return nil
}

// errTrialOver is why a trial is not ended: somebody has confirmed it, or gone back, in the meantime.
var errTrialOver = errors.New("the trial is over")

// mayTurn says why the switch cannot be, with what is on trial and what is live.
func (t *turn) mayTurn(live map[string]int) error {
	on := t.before.Trial
	switch {
	case t.ends != nil && (on == nil || !on.Until.Equal(t.ends.Until)):
		return errTrialOver
	case on != nil && !t.back:
		return problem.New(problem.Mistake, "release %s is on trial until %s", site.ReleaseName(on.Release), clock(on.Until)).At(t.site.Key()).
			Try("orrery confirm or orrery rollback first")
	case on != nil && len(t.to) < len(on.Back):
		return problem.New(problem.Mistake, "release %s is on trial with %s, which go back together", site.ReleaseName(on.Release), count(len(on.Back), "node")).At(t.site.Key()).
			Try("orrery rollback, without naming nodes, or orrery confirm first")
	case t.trial != nil && len(live) < len(t.to):
		return problem.New(problem.Mistake, "nothing is live to which the trial of release %s could go back", site.ReleaseName(t.trial.Release)).At(t.site.Key()).
			Try("switch to it without --confirm-within")
	}
	if t.trial != nil {
		t.trial.Back = live
	}
	return nil
}

// onlyRecords reports whether a plan changes nothing but what is on record.
func onlyRecords(p *plan.Plan) bool {
	return !slices.ContainsFunc(p.Steps, func(s *plan.Step) bool { return s.Kind != plan.CommitSwitch && s.Kind != plan.WriteNames })
}

// liveNow gives the releases of those nodes that are live.
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

// intend takes down where the set is to end, before anything is done.
func (t *turn) intend(live map[string]int) error {
	end := live
	if t.back || len(live) < len(t.to) { // nothing was live to which it could go back
		end = t.to
	}
	r := t.before
	r.Switch = &observe.Switch{To: t.to, End: end, Who: who(), Since: time.Now().UTC(), Pid: os.Getpid()}
	if err := t.host.WriteReleases(r); err != nil || t.trial == nil {
		return err
	}
	return t.watchTrial(t.site) // before the trial begins, lest it begin and nobody watch
}

// explain says where the set is after a switch that failed. What was intended is forgotten if it is wholly back.
func (t *turn) explain(err error, live map[string]int) error {
	var p *problem.Problem
	if !errors.As(err, &p) {
		return err
	}
	switch p.Kind {
	case problem.Undone:
		if wrong := t.host.WriteReleases(t.before); wrong != nil {
			return errors.Join(err, wrong)
		}
		return problem.New(problem.Reverted, "the switch failed; all %s are back at release %s", count(len(t.to), "node"), at(live)).
			At(t.site.Key()).Try("the messages above say why; orrery logs NODE --release N tells more")
	case problem.Left:
		return t.halfWay(err)
	}
	return err
}

// halfWay says of each node at which release it is.
func (t *turn) halfWay(cause error) error {
	hosts, err := t.seen(context.Background(), t.host)
	if err != nil {
		return errors.Join(cause, err)
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
	return problem.New(problem.HalfWay, "the switch failed and could not be taken back wholly; %s", shortList(words, 40)).At(t.site.Key()).Because(cause).
		Try("mend the cause; the next orrery up, switch or rollback brings the set to one release first")
}
