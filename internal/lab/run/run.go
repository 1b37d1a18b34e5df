package run

import (
	"context"
	"fmt"
	"time"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/place"
	"orrery/internal/lab/setting"
	"orrery/internal/lab/stats"
	"orrery/internal/lab/test"
)

// A Run is one experiment on its way.
type Run struct {
	Experiment *experiment.Experiment
	Ground     *setting.Ground
	Seed       uint64
	Before     []bundle.Trial // of a run that is gone on with
	Book       Book
	Progress   Progress
	Watcher    Observer
	// Anew makes all nodes anew, and gives where to measure then.
	Anew func(context.Context) (*setting.Ground, error)
	// Worth says how many rounds an instance of the nodes is worth that costs as much as so many; 0:
	// not known yet.
	Worth func(trials []bundle.Trial, cost float64) float64
	// More reports, after the rounds that must be, whether there shall be another.
	More func([]bundle.Trial) bool
	// Budget is how long rounds may take in all; 0: as long as they do. No round begins that would end later.
	Budget time.Duration

	units  []*Unit
	trials []bundle.Trial
	spent  map[cell]time.Duration // the last trial of each cell
	failed map[cell]int           // trials in a row that gave nothing
	former map[cell]bool          // given up by a former run

	givenUpAt map[cell]surrender
	slot      int

	instance, first       int           // of the nodes: that of now, and that with which this run began
	lived                 int           // rounds that count, in this instance
	perInstance, perRound time.Duration // what the last of each took
	waitTimeout           time.Duration // for others on the host
	begun                 bool
	since                 time.Time      // when this run began
	costs                 func() float64 // in place of what was measured, so that tests need not depend on it
}

// An Observer watches the host.
type Observer interface {
	// Begin is called before the first round, and once.
	Begin(context.Context) error
	// Look begins to watch a trial. The function that it returns ends that, and says why the trial is
	// suspect which has moved so much.
	Look(u *Unit, near []*place.Place) func(test.Moved) []test.Label
	// Restless watches the host for a moment while no trial is under way, and says who uses it; "": nobody.
	Restless(context.Context) (why string, err error)
}

// A Book is where trials are kept.
type Book interface {
	Trial(bundle.Trial) error
	Keep(name string, content []byte) error
	Round(complete int) error
}

// A Progress is told how a run gets on.
type Progress interface {
	Round(round, rounds int)
	Trial(test, setting string, left time.Duration)
	Failed(test, setting string, err error)
	// Renewing is told before the nodes are made for the n-th time.
	Renewing(n int)
	// Waiting is told while others use the host, with what is left of the patience.
	Waiting(why string, timeout time.Duration)
}

// A Unit is a test with a number of copies: a row of the table.
type Unit struct {
	*experiment.Test
	Title  string // "cpu x8"
	Copies int
}

// A cell is a unit in a setting.
type cell struct{ unit, setting string }

// Units returns the tests of an experiment, one for each number of copies.
func Units(e *experiment.Experiment) []*Unit {
	var all []*Unit
	for i := range e.Tests {
		t := &e.Tests[i]
		for _, n := range t.Copies {
			title := t.Name
			if n > 1 {
				title = fmt.Sprintf("%s x%d", t.Name, n)
			}
			all = append(all, &Unit{t, title, n})
		}
	}
	return all
}

// Settings returns the names of the settings of an experiment that this host can have, those that
// always are there first.
func Settings(e *experiment.Experiment) []string {
	names := []string{experiment.Bare, experiment.Control}
	for _, s := range e.Settings {
		if s.Missing == "" {
			names = append(names, s.Name)
		}
	}
	return names
}

// settings returns those in which a unit is done.
func (r *Run) settings(u *Unit) []string {
	var names []string
	for _, name := range Settings(r.Experiment) {
		if u.In(name) {
			names = append(names, name)
		}
	}
	return names
}

// minRounds is how many trials of a cell in a row must have failed until it is given up.
const minRounds = 3

// Do does all rounds. Round 0 is a rehearsal. A trial that fails is kept as such, and the rest goes
// on; an error is one of the bundle, or the end of ctx.
func (r *Run) Do(ctx context.Context) error {
	r.begin()
	for round := 0; r.goesOn(round); round++ {
		if r.whole(round) {
			continue
		}
		if err := r.ready(ctx); err != nil {
			return err
		}
		r.Progress.Round(round, r.rounds(round))
		r.slot = 0
		began := time.Now()
		for n, u := range r.units {
			if r.complete(round, u) {
				continue
			}
			names := r.settings(u)
			for _, i := range stats.Order(len(names), round, r.Seed+uint64(n)) {
				if err := r.cell(ctx, round, u, names[i]); err != nil {
					return err
				}
			}
		}
		if r.perRound = time.Since(began); round > 0 {
			r.lived++
		}
		if err := r.Book.Round(round + 1); err != nil {
			return err
		}
	}
	return nil
}

func (r *Run) begin() {
	r.units = Units(r.Experiment)
	r.trials = append(r.trials, r.Before...)
	r.spent, r.failed, r.former = map[cell]time.Duration{}, map[cell]int{}, map[cell]bool{}
	r.givenUpAt = map[cell]surrender{}
	for _, t := range r.trials {
		r.note(t)
		r.instance = max(r.instance, t.Instance)
	}
	for c, n := range r.failed {
		r.former[c] = n >= minRounds
		r.givenUpAt[c] = surrender{r.instance, 1}
	}
	r.instance++ // what a former run had is gone
	r.forgive()
	r.first, r.waitTimeout, r.since = r.instance, r.Experiment.Quiet, time.Now()
}

// goesOn reports whether there is a round of that number: the rehearsal, those that must be, and
// more while the intervals are too wide, or there are too few instances for any. Nodes that are
// made only once will never be enough.
func (r *Run) goesOn(round int) bool {
	switch {
	case r.Budget > 0 && round > 1 && time.Since(r.since)+r.perRound+r.perInstance > r.Budget:
		return false
	case round <= r.Experiment.Rounds:
		return true
	case round > r.Experiment.Most || r.Experiment.PerInstance == experiment.Once:
		return false
	}
	return r.More(r.trials)
}

// rounds is how many there will be, as far as is known.
func (r *Run) rounds(round int) int { return max(r.Experiment.Rounds, round) }

// whole reports whether a former run has done a round to its end.
func (r *Run) whole(round int) bool {
	for _, u := range r.units {
		if !r.complete(round, u) {
			return false
		}
	}
	return true
}

// complete reports whether a former run did all trials of a unit in a round, but for those that it
// had given up.
func (r *Run) complete(round int, u *Unit) bool {
	seen := map[string]bool{}
	for _, t := range r.Before {
		if t.Round == round && t.Test == u.Title {
			seen[t.Setting] = true
		}
	}
	for _, name := range r.settings(u) {
		if !seen[name] && !r.former[cell{u.Title, name}] {
			return false
		}
	}
	return true
}

// givenUp reports whether a unit has failed too often in a setting to be tried there again.
func (r *Run) givenUp(u *Unit, setting string) bool {
	return r.failed[cell{u.Title, setting}] >= minRounds
}

// cell does one unit in one setting once.
func (r *Run) cell(ctx context.Context, round int, u *Unit, name string) error {
	if r.givenUp(u, name) {
		return nil
	}
	r.Progress.Trial(u.Title, name, r.left(round))
	for _, t := range r.copies(ctx, round, u, name) {
		if ctx.Err() != nil {
			return context.Cause(ctx) // a trial that was cut short says nothing
		}
		if t.Error != "" && t.Copy == 0 {
			r.Progress.Failed(u.Title, name, fmt.Errorf("%s", t.Error))
		}
		r.trials = append(r.trials, t)
		r.note(t)
		if err := r.Book.Trial(t); err != nil {
			return err
		}
	}
	r.slot++
	return nil
}

// note remembers how long a trial took and whether it gave anything.
func (r *Run) note(t bundle.Trial) {
	if t.Copy > 0 {
		return
	}
	c := cell{t.Test, t.Setting}
	r.spent[c] = t.Ended.Sub(t.Began)
	r.failed[c]++
	if t.Error == "" {
		r.failed[c] = 0
		delete(r.givenUpAt, c)
	} else if r.failed[c] == minRounds {
		r.givenUpAt[c] = surrender{r.instance, r.givenUpAt[c].times + 1}
	}
}

// left is about how long the rest takes: trials as long as the last of their kind.
func (r *Run) left(round int) time.Duration {
	var whole, rest time.Duration
	n := 0
	for _, u := range r.units {
		for _, name := range r.settings(u) {
			took, known := r.spent[cell{u.Title, name}]
			if !known {
				took = u.Time()
			}
			if r.givenUp(u, name) {
				took = 0
			}
			whole += took
			if n >= r.slot {
				rest += took
			}
			n++
		}
	}
	return rest + whole*time.Duration(max(0, r.Experiment.Rounds-round))
}
