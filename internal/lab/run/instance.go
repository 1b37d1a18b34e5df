package run

import (
	"context"
	"math"
	"time"
)

// An instance is not a setting: nodes that were made once may have been lucky, and are so in all their rounds. So they are made anew every
// few rounds, all of them at once, and with them the networks and the work directories, that of the bare host too; its programs are
// in a mount namespace and a process of their own each time as it is.

// The bounds of how many rounds an instance lives where the experiment does not say: until something is known of what instances and
// rounds add to the spread it is pilotRounds, and then what Kalibera and Jones give for what both cost, but never more than mostRounds, nor
// so many that there would be less than about fewest instances: with few, one that others disturbed makes all intervals wide.
const (
	pilots      = 2
	pilotRounds = 2
	mostRounds  = 3
	fewest      = 10
)

// lives gives how many rounds the nodes of now are to live.
func (r *Run) lives() int {
	if n := r.Experiment.PerInstance; n > 0 {
		return n
	}
	switch rounds := r.Experiment.Rounds; {
	case rounds < fewest:
		return 1
	case r.instance <= pilots && r.first == 1:
		return pilotRounds
	default:
		most := float64(min(mostRounds, max(1, rounds/fewest)))
		worth := r.Worth(r.trials, float64(r.perInstance)/float64(max(1, r.perRound)))
		return int(math.Round(min(max(worth, 1), most)))
	}
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

// renew makes the nodes anew if those of now have lived long enough. The rehearsal and the first round that counts have the same.
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
	err = r.prepare(ctx)
	r.perInstance = time.Since(began)
	return err
}

// prepare has each test lay out what it needs in new places, and run its programs there once. Where that fails the trial will, and says why.
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

// settle waits until others leave the host alone, as long as there is patience left. What is disturbed all the same is labelled.
func (r *Run) settle(ctx context.Context) error {
	for r.patience > 0 {
		began := time.Now()
		why, err := r.Watcher.Restless(ctx)
		if err != nil || why == "" {
			return err
		}
		r.Progress.Waiting(why, r.patience)
		r.patience -= time.Since(began)
	}
	return nil
}
