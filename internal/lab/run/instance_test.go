package run

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/place"
	"orrery/internal/lab/probe"
	"orrery/internal/lab/setting"
	"orrery/internal/lab/test"
)

// instances returns the instance of each round.
func instances(trials []bundle.Trial) []int {
	var all []int
	for _, t := range trials {
		for len(all) <= t.Round {
			all = append(all, 0)
		}
		all[t.Round] = t.Instance
	}
	return all
}

// TestAnew: nodes live as many rounds as the experiment says, the rehearsal shares those of the
// first round, and trials run in the current nodes.
func TestAnew(t *testing.T) {
	for per, want := range map[int][]int{
		1: {1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 3: {1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4}, 100: {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
	} {
		r, book, watch := runOf(&gauge{}, 1)
		r.Experiment.PerInstance = per
		made := 1
		r.Recreate = func(context.Context) (*setting.Places, error) {
			made++
			ground := &setting.Places{Near: map[string][]*place.Place{}, Far: map[string]*place.Place{}}
			for name := range r.Places.Near {
				ground.Near[name] = []*place.Place{{Name: name, Runner: nowhere{}, Dir: "/nowhere"}}
			}
			return ground, nil
		}
		first := r.Places
		if err := r.Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := instances(book.trials); !slices.Equal(got, want) || len(watch.renewed) != made-1 || made != want[10] {
			t.Errorf("%d rounds for each: instances %v, want %v; %d were made, told %v", per, got, want, made, watch.renewed)
		}
		if made > 1 && r.Places == first {
			t.Errorf("%d rounds for each: the old nodes were measured", per)
		}
	}
}

// TestAuto: by default, an instance lives one round if creating it is cheap. Otherwise the next two
// live two rounds, and later ones as many as computed, but never so many that there would be too
// few instances. With few rounds each has its own instance.
func TestAuto(t *testing.T) {
	for name, c := range map[string]struct {
		rounds      int
		cost, worth float64
		want        []int
	}{
		"cheap": {30, 0.1, 9, []int{1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
			20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30}},
		"they are worth one":  {10, 2, 0.2, []int{1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8}},
		"many, in ten rounds": {10, 2, 9, []int{1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8}},
		"many, in twenty":     {20, 2, 9, []int{1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11}},
		"three, in thirty": {30, 2, 3.2, []int{1, 1, 2, 2, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6, 7, 7, 7, 8, 8, 8, 9, 9, 9,
			10, 10, 10, 11, 11, 11, 12}},
		"nothing is known":      {10, 2, 0, []int{1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8}},
		"fewer than ten rounds": {5, 2, 9, []int{1, 1, 2, 3, 4, 5}},
	} {
		r, book, _ := runOf(&gauge{}, 1)
		r.Experiment.Rounds, r.Experiment.Most = c.rounds, c.rounds
		r.Worth = func([]bundle.Trial, float64) float64 { return c.worth }
		r.costs = func() float64 { return c.cost }
		if err := r.Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := instances(book.trials); !slices.Equal(got, c.want) {
			t.Errorf("%s: instances %v, want %v", name, got, c.want)
		}
	}
}

// TestForgiven: a cell that was given up is tried again in new nodes, and continues if it works
// there. A cell that never works is tried less and less often.
func TestForgiven(t *testing.T) {
	for name, c := range map[string]struct {
		works int // first instance in which it works
		want  []int
	}{
		"one dead node": {2, []int{0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
		"never":         {100, []int{0, 1, 2, 4, 10}},
	} {
		g := &gauge{fails: "veth"}
		r, book, _ := runOf(g, 1)
		r.Experiment.PerInstance, r.Experiment.Rounds, r.Experiment.Most = 3, 12, 12
		anew, made := r.Recreate, 1
		r.Recreate = func(ctx context.Context) (*setting.Places, error) {
			if made++; made >= c.works {
				g.fails = ""
			}
			return anew(ctx)
		}
		if err := r.Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		var tried []int
		for _, trial := range book.trials {
			if trial.Setting == "veth" {
				tried = append(tried, trial.Round)
			}
		}
		if !slices.Equal(tried, c.want) {
			t.Errorf("%s: tried in rounds %v, want %v", name, tried, c.want)
		}
	}
}

// TestBudget: no round begins that would end after the budget, except the first one that counts.
func TestBudget(t *testing.T) {
	r, book, _ := runOf(&gauge{}, 1)
	r.Budget = 1
	if err := r.Do(t.Context()); err != nil || book.rounds != 2 {
		t.Errorf("%d rounds, the rehearsal included: %v", book.rounds, err)
	}
	r, book, _ = runOf(&gauge{}, 1)
	r.Budget = time.Hour
	if err := r.Do(t.Context()); err != nil || book.rounds != 11 {
		t.Errorf("%d rounds, the rehearsal included: %v", book.rounds, err)
	}
}

// TestOnce: nodes that are created only once decide nothing, so there are no additional rounds.
func TestOnce(t *testing.T) {
	r, book, _ := runOf(&gauge{}, 1)
	r.Experiment.PerInstance = experiment.NeverRecreate
	r.More = func([]bundle.Trial) bool { return true }
	if err := r.Do(t.Context()); err != nil || book.rounds != 11 {
		t.Errorf("%d rounds, the rehearsal included: %v", book.rounds, err)
	}
}

// TestBusyMoment: what other processes did in the two seconds before the first round neither counts
// against the trials nor as the host's own load.
func TestBusyMoment(t *testing.T) {
	for busy, want := range map[time.Duration]float64{time.Second: 0, 40 * time.Millisecond: 0.02} {
		if got := idleLoad(probe.CPU{Busy: busy, Total: 2 * time.Second}).Share(); got != want {
			t.Errorf("%v of 2 s were busy: the host's own is %v", busy, got)
		}
	}
}

// TestAnewFails: a run whose nodes cannot be recreated ends, and its results so far are stored.
func TestAnewFails(t *testing.T) {
	r, book, _ := runOf(&gauge{}, 1)
	r.Experiment.PerInstance = 2
	r.Recreate = func(context.Context) (*setting.Places, error) { return nil, errors.New("no room") }
	if err := r.Do(t.Context()); err == nil || len(book.trials) != 3*3 {
		t.Errorf("%v, %d trials", err, len(book.trials))
	}
}

// TestGivenUp: a cell that was given up is tried once more when the run is resumed, because the
// nodes are new. It does not keep a finished round from counting as finished.
func TestGivenUp(t *testing.T) {
	for _, fails := range []string{"veth", "bare"} {
		r, book, _ := runOf(&gauge{fails: fails}, 1)
		ctx, cancel := context.WithCancel(t.Context())
		book.after = func(n int) {
			if n == 20 { // in round 7
				cancel()
			}
		}
		_ = r.Do(ctx)
		last := book.trials[len(book.trials)-1].Round
		for again := range 3 {
			g := &gauge{fails: fails}
			r, rest, _ := runOf(g, 1)
			r.Experiment.PerInstance = 100
			r.Before = book.trials
			ctx, cancel := context.WithCancel(t.Context())
			rest.after = func(int) { cancel() }
			_ = r.Do(ctx)
			for _, trial := range rest.trials {
				if trial.Round < last {
					t.Errorf("gone on with, time %d: round %d, setting %s is measured again; round %d is under way", again+1,
						trial.Round, trial.Setting, last)
				}
				if trial.Instance <= instances(book.trials)[last] {
					t.Errorf("the instance %d of a run that has ended goes on", trial.Instance)
				}
			}
			book.trials = append(book.trials, rest.trials...)
			last = book.trials[len(book.trials)-1].Round
		}
	}
}

// TestQuiet: a round waits until other processes leave the host idle, but the whole run waits no
// longer than Quiet. If Quiet is 0, it does not check.
func TestQuiet(t *testing.T) {
	for _, c := range []struct {
		quiet    time.Duration
		restless int
		waited   int
	}{{time.Hour, 0, 0}, {time.Hour, 3, 3}, {0, 3, 0}, {1, 100, 1}} {
		r, book, watch := runOf(&gauge{}, 1)
		watcher := &closed{restless: c.restless}
		r.Experiment.Quiet, r.Watcher = c.quiet, watcher
		if err := r.Do(t.Context()); err != nil || book.rounds != 11 {
			t.Errorf("%d rounds: %v", book.rounds, err)
		}
		if watcher.begun != 1 {
			t.Errorf("the measure of the idle host was taken %d times", watcher.begun)
		}
		if watch.waited != c.waited {
			t.Errorf("quiet = %v, restless for %d moments: waited %d times, not %d", c.quiet, c.restless, watch.waited, c.waited)
		}
	}
}

// TestPrepare: new places are prepared before they are measured, except for cells that were given
// up.
func TestPrepare(t *testing.T) {
	g := &laid{gauge: gauge{fails: "veth"}}
	r, _, _ := runOf(&g.gauge, 1)
	r.Experiment.Tests[0].Test = g
	r.Experiment.PerInstance = 1
	if err := r.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if g.places["bare"] != 9 || g.places["veth"] != 4 {
		// given up in round 2, whose instance was prepared before; tried in 3, 5 and 9
		t.Errorf("laid out %v", g.places)
	}
}

// laid counts how often each place was prepared.
type laid struct {
	gauge
	places map[string]int
}

func (l *laid) Check(_ context.Context, t *test.Trial) error {
	if l.places == nil {
		l.places = map[string]int{}
	}
	l.places[t.Near.Name]++
	return nil
}
