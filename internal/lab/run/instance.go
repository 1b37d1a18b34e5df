package run

import (
	"context"
	"math"
	"time"
)

// An instance is not a setting: nodes that were made once may have been lucky, and are so in all
// their rounds. So they are made anew every few rounds, all of them at once, and with them the
// networks and the work directories, that of the bare host too; its programs are in a mount
// namespace and a process of their own each time as it is.

// How many rounds an instance lives where the experiment does not say. Where making one is cheap
// beside a round, it lives one: of as many rounds, that tells the most (at a true 10 % and noise of
// 4 %, 90 % are found in 30 rounds instead of 60 % with three rounds each). Where it is not, the
// next instances live pilotRounds until something is known of what instances and rounds add to the
// spread, and then what Kalibera and Jones give for what both cost, but never more than maxRounds,
// nor so many that there would be less than about fewest instances: with few, one that others
// disturbed makes all intervals wide.
const (
	cheap       = 0.5 // rounds that making an instance may take
	pilots      = 2
	pilotRounds = 2
	maxRounds   = 3
	fewest      = 10
)

// lives returns how many rounds the nodes of now are to live.
func (r *Run) lives() int {
	if n := r.Experiment.PerInstance; n > 0 {
		return n
	}
	cost := r.cost()
	switch rounds := r.Experiment.Rounds; {
	case rounds < fewest || r.instance == r.first || cost <= cheap:
		// what an instance costs is known when the second was made
		return 1
	case r.instance <= r.first+pilots && r.first == 1:
		return pilotRounds
	default:
		most := float64(min(maxRounds, max(1, rounds/fewest)))
		return int(math.Round(min(max(r.Worth(r.trials, cost), 1), most)))
	}
}

// cost is how many rounds it takes as long to make an instance.
func (r *Run) cost() float64 {
	if r.costs != nil {
		return r.costs()
	}
	return float64(r.perInstance) / float64(max(1, r.perRound))
}

// ready is what comes before a round.
func (r *Run) ready(ctx context.Context) error {
	if err := r.renew(ctx); err != nil {
		return err
	}
	if err := r.settle(ctx); err != nil || r.begun {
		return err
	}
	r.begun = true
	return r.Watcher.Begin(ctx)
}

// renew makes the nodes anew if those of now have lived long enough. The rehearsal and the first
// round that counts have the same.
func (r *Run) renew(ctx context.Context) error {
	if r.lived < r.lives() {
		return nil
	}
	began := time.Now()
	r.Progress.Renewing(r.instance + 1)
	ground, err := r.Anew(ctx)
	if err != nil {
		return err
	}
	r.Ground, r.lived = ground, 0
	r.instance++
	r.forgive()
	err = r.prepare(ctx)
	r.perInstance = time.Since(began)
	return err
}

// A surrender is when a cell was given up, and how often in a row.
type surrender struct{ instance, times int }

// forgive has cells that were given up tried once more: what failed in the former nodes may work in
// new ones. One that fails again waits twice as many instances, so that what never works does not
// take its time in every round.
func (r *Run) forgive() {
	for c, n := range r.failed {
		if last := r.givenUpAt[c]; n >= minRounds && r.instance-last.instance >= 1<<min(last.times-1, 16) {
			r.failed[c] = minRounds - 1
		}
	}
}

// prepare has each test lay out what it needs in new places, and run its programs there once. Where
// that fails the trial will, and says why.
func (r *Run) prepare(ctx context.Context) error {
	for _, u := range r.units {
		for _, name := range r.settings(u) {
			if r.givenUp(u, name) {
				continue
			}
			if err := r.check(ctx, u, name); err != nil {
				r.Progress.Failed(u.Title, name, err)
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

// settle waits until others leave the host alone, as long as there is patience left. What is
// disturbed all the same is labelled.
func (r *Run) settle(ctx context.Context) error {
	for r.waitTimeout > 0 {
		began := time.Now()
		why, err := r.Watcher.Restless(ctx)
		if err != nil || why == "" {
			return err
		}
		r.Progress.Waiting(why, r.waitTimeout)
		r.waitTimeout -= time.Since(began)
	}
	return nil
}
