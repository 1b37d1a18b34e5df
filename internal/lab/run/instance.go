package run

import (
	"context"
	"math"
	"time"
)

// An instance is only one sample of a setting: nodes that are created once may be lucky, in all of
// their rounds. Therefore all nodes are recreated together every few rounds, with their networks
// and work directories. The work directory of the bare host is recreated too. Its programs have a
// new mount namespace and process each time anyway.

// How many rounds an instance lives if the experiment does not say. If creating one is cheap
// compared with a round, it lives one round. For a given number of rounds, that is the most
// informative: with a true 10 % and noise of 4 %, 90 % are found in 30 rounds. With three rounds
// per instance, only 60 % are found. Otherwise the next instances live pilotRounds, until the
// contributions of instances and rounds to the spread are known. Then they live as long as Kalibera
// and Jones compute from the costs of both, but at most maxRoundsPerInstance. There must be at least about
// fewest instances, because with few, one disturbed instance makes all intervals wide.
const (
	maxCheapCost         = 0.5 // maximum cost of creating an instance, in rounds
	pilotInstances       = 2
	pilotRounds          = 2
	maxRoundsPerInstance = 3
	minInstances         = 10
)

// roundsPerInstance returns how many rounds the current nodes should live.
func (r *Run) roundsPerInstance() int {
	if n := r.Experiment.PerInstance; n > 0 {
		return n
	}
	cost := r.instanceCost()
	switch rounds := r.Experiment.Rounds; {
	case rounds < minInstances || r.instance == r.first || cost <= maxCheapCost:
		// the cost of an instance is known after the second was created
		return 1
	case r.instance <= r.first+pilotInstances && r.first == 1:
		return pilotRounds
	default:
		most := float64(min(maxRoundsPerInstance, max(1, rounds/minInstances)))
		return int(math.Round(min(max(r.Worth(r.trials, cost), 1), most)))
	}
}

// instanceCost returns the time to create an instance, in rounds.
func (r *Run) instanceCost() float64 {
	if r.costs != nil {
		return r.costs()
	}
	return float64(r.perInstance) / float64(max(1, r.perRound))
}

// prepareRound prepares a round.
func (r *Run) prepareRound(ctx context.Context) error {
	if err := r.renewInstance(ctx); err != nil {
		return err
	}
	if err := r.waitUntilIdle(ctx); err != nil || r.begun {
		return err
	}
	r.begun = true
	return r.Watcher.Begin(ctx)
}

// renewInstance recreates the nodes if the current ones have lived long enough. The rehearsal and the first
// round that counts use the same nodes.
func (r *Run) renewInstance(ctx context.Context) error {
	if r.lived < r.roundsPerInstance() {
		return nil
	}
	began := time.Now()
	r.Progress.Renewing(r.instance + 1)
	ground, err := r.Recreate(ctx)
	if err != nil {
		return err
	}
	r.Places, r.lived = ground, 0
	r.instance++
	r.retryGivenUp()
	err = r.prepare(ctx)
	r.perInstance = time.Since(began)
	return err
}

// A giveUpRecord is the instance in which a cell was given up, and how often in a row that happened.
type giveUpRecord struct{ instance, times int }

// retryGivenUp lets cells that were given up be tried once more, because what failed in the old nodes
// may work in new ones. If a cell fails again, it waits for twice as many instances, so that a cell
// that never works does not take time in every round.
func (r *Run) retryGivenUp() {
	for c, n := range r.failed {
		if last := r.givenUpAt[c]; n >= maxConsecutiveFailures && r.instance-last.instance >= 1<<min(last.times-1, 16) {
			r.failed[c] = maxConsecutiveFailures - 1
		}
	}
}

// prepare lets each test prepare new places and run its programs once. If that fails, the trial
// will fail too and record the reason.
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

// waitUntilIdle waits until other processes leave the host idle, or until the waiting time is used up.
// Trials that are disturbed nevertheless have a label.
func (r *Run) waitUntilIdle(ctx context.Context) error {
	for r.waitTimeout > 0 {
		began := time.Now()
		why, err := r.Watcher.BusyReason(ctx)
		if err != nil || why == "" {
			return err
		}
		r.Progress.Waiting(why, r.waitTimeout)
		r.waitTimeout -= time.Since(began)
	}
	return nil
}
