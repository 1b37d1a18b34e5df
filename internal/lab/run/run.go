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

// A Run is an experiment that is running.
type Run struct {
	Experiment *experiment.Experiment
	Places     *setting.Places
	Seed       uint64
	Before     []bundle.Trial // trials of the interrupted run that is resumed
	Recorder   Recorder
	Progress   Progress
	Watcher    Observer
	// Recreate recreates all nodes and returns where to measure then.
	Recreate func(context.Context) (*setting.Places, error)
	// Worth returns how many rounds an instance of the nodes should have if it costs the given
	// number of rounds, or 0 if unknown.
	Worth func(trials []bundle.Trial, cost float64) float64
	// More reports, after the required rounds, whether to run another one.
	More func([]bundle.Trial) bool
	// Budget limits the total time of rounds, or 0 for no limit. No round begins that would end
	// later.
	Budget time.Duration

	units  []*Unit
	trials []bundle.Trial
	spent  map[cell]time.Duration // duration of the last trial of each cell
	failed map[cell]int           // consecutive failed trials
	former map[cell]bool          // given up by the interrupted run

	givenUpAt map[cell]giveUpRecord
	slot      int

	instance, first       int           // of the nodes: the current one, and the first one of this run
	lived                 int           // rounds that count in this instance
	perInstance, perRound time.Duration // duration of the last of each
	waitTimeout           time.Duration // time left for waiting for other processes on the host
	begun                 bool
	since                 time.Time      // start of this run
	costs                 func() float64 // replaces the measured costs in tests
}

// An Observer watches the host.
type Observer interface {
	// Begin is called once before the first round.
	Begin(context.Context) error
	// Watch starts to watch a trial. The returned function ends that, and returns why the trial is
	// suspect, given the amount of data that it moved.
	Watch(u *Unit, near []*place.Place) func(test.Moved) []test.Label
	// BusyReason watches the host briefly between trials and returns what uses it, or "" if it is
	// idle.
	BusyReason(context.Context) (why string, err error)
}

// A Recorder stores the trials.
type Recorder interface {
	AppendTrial(bundle.Trial) error
	WriteOutput(name string, content []byte) error
	RoundDone(complete int) error
}

// A Progress is notified of the progress of a run.
type Progress interface {
	Round(round, rounds int)
	Trial(test, setting string, left time.Duration)
	Failed(test, setting string, err error)
	// Renewing is called before the nodes are created for the n-th time.
	Renewing(n int)
	// Waiting is called while other processes use the host, with the remaining waiting time.
	Waiting(why string, timeout time.Duration)
}

// A Unit is a test with a number of copies: a row of the table.
type Unit struct {
	*experiment.Test
	Title  string // such as "cpu x8"
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

// Settings returns the names of the experiment's settings that this host supports. Those that
// always exist come first.
func Settings(e *experiment.Experiment) []string {
	names := []string{experiment.Bare, experiment.Control}
	for _, s := range e.Settings {
		if s.Missing == "" {
			names = append(names, s.Name)
		}
	}
	return names
}

// settings returns the settings in which a unit runs.
func (r *Run) settings(u *Unit) []string {
	var names []string
	for _, name := range Settings(r.Experiment) {
		if u.RunsIn(name) {
			names = append(names, name)
		}
	}
	return names
}

// maxConsecutiveFailures is the number of consecutive failed trials after which a cell is given up.
const maxConsecutiveFailures = 3

// Do runs all rounds. Round 0 is a rehearsal. A failed trial is stored as such, and the run
// continues. It returns an error if the bundle cannot be written, the nodes cannot be recreated,
// the host cannot be watched, or ctx ends.
func (r *Run) Do(ctx context.Context) error {
	r.begin()
	for round := 0; r.needsRound(round); round++ {
		if r.isRoundDone(round) {
			continue
		}
		if err := r.prepareRound(ctx); err != nil {
			return err
		}
		r.Progress.Round(round, r.totalRounds(round))
		r.slot = 0
		began := time.Now()
		for n, u := range r.units {
			if r.isUnitDone(round, u) {
				continue
			}
			names := r.settings(u)
			for _, i := range stats.Order(len(names), round, r.Seed+uint64(n)) {
				if err := r.runCell(ctx, round, u, names[i]); err != nil {
					return err
				}
			}
		}
		if r.perRound = time.Since(began); round > 0 {
			r.lived++
		}
		if err := r.Recorder.RoundDone(round + 1); err != nil {
			return err
		}
	}
	return nil
}

func (r *Run) begin() {
	r.units = Units(r.Experiment)
	r.trials = append(r.trials, r.Before...)
	r.spent, r.failed, r.former = map[cell]time.Duration{}, map[cell]int{}, map[cell]bool{}
	r.givenUpAt = map[cell]giveUpRecord{}
	for _, t := range r.trials {
		r.recordTrial(t)
		r.instance = max(r.instance, t.Instance)
	}
	for c, n := range r.failed {
		r.former[c] = n >= maxConsecutiveFailures
		r.givenUpAt[c] = giveUpRecord{r.instance, 1}
	}
	r.instance++ // the nodes of the interrupted run no longer exist
	r.retryGivenUp()
	r.first, r.waitTimeout, r.since = r.instance, r.Experiment.Quiet, time.Now()
}

// needsRound reports whether to run a round: the rehearsal, the required rounds, and more while
// intervals are too wide or there are too few instances for intervals. With nodes that are created
// only once there are never enough.
func (r *Run) needsRound(round int) bool {
	switch {
	case r.Budget > 0 && round > 1 && time.Since(r.since)+r.perRound+r.perInstance > r.Budget:
		return false
	case round <= r.Experiment.Rounds:
		return true
	case round > r.Experiment.Most || r.Experiment.PerInstance == experiment.NeverRecreate:
		return false
	}
	return r.More(r.trials)
}

// totalRounds returns the number of rounds, as far as it is known.
func (r *Run) totalRounds(round int) int { return max(r.Experiment.Rounds, round) }

// isRoundDone reports whether the interrupted run finished a round.
func (r *Run) isRoundDone(round int) bool {
	for _, u := range r.units {
		if !r.isUnitDone(round, u) {
			return false
		}
	}
	return true
}

// isUnitDone reports whether the interrupted run did all trials of a unit in a round, except those
// that it had given up.
func (r *Run) isUnitDone(round int, u *Unit) bool {
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
	return r.failed[cell{u.Title, setting}] >= maxConsecutiveFailures
}

// runCell runs one unit in one setting once.
func (r *Run) runCell(ctx context.Context, round int, u *Unit, name string) error {
	if r.givenUp(u, name) {
		return nil
	}
	r.Progress.Trial(u.Title, name, r.remainingTime(round))
	for _, t := range r.runCopies(ctx, round, u, name) {
		if ctx.Err() != nil {
			return context.Cause(ctx) // a trial that was cut short has no meaning
		}
		if t.Error != "" && t.Copy == 0 {
			r.Progress.Failed(u.Title, name, fmt.Errorf("%s", t.Error))
		}
		r.trials = append(r.trials, t)
		r.recordTrial(t)
		if err := r.Recorder.AppendTrial(t); err != nil {
			return err
		}
	}
	r.slot++
	return nil
}

// recordTrial records how long a trial took and whether it failed.
func (r *Run) recordTrial(t bundle.Trial) {
	if t.Copy > 0 {
		return
	}
	c := cell{t.Test, t.Setting}
	r.spent[c] = t.Ended.Sub(t.Began)
	r.failed[c]++
	if t.Error == "" {
		r.failed[c] = 0
		delete(r.givenUpAt, c)
	} else if r.failed[c] == maxConsecutiveFailures {
		r.givenUpAt[c] = giveUpRecord{r.instance, r.givenUpAt[c].times + 1}
	}
}

// remainingTime estimates the remaining time, from the last trial of each cell.
func (r *Run) remainingTime(round int) time.Duration {
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
