// Package search finds the highest rate at which a receiver loses nothing, in few trials.
//
// It is pure: the caller provides the trials.
package search

import (
	"context"
	"math"

	"orrery/internal/problem"
)

// An Outcome is the result of one trial.
type Outcome struct {
	Rate     float64 // requested bit/s, or +Inf for a full blast
	Achieved float64 // sent bit/s
	Goodput  float64 // received bit/s
	Sent     uint64  // heaps
	Received uint64  // heaps
	Valid    bool    // the sender reached the rate; an invalid trial says nothing about the receiver
}

// Clean reports whether the trial is valid and nothing was lost. A valid trial that is not clean is
// lossy.
func (o Outcome) Clean() bool { return o.Valid && o.Received == o.Sent }

// A Trial runs one trial at a rate in bit/s. +Inf is a full blast, as fast as the sender can, which
// is valid at any rate. An error ends the search.
type Trial func(ctx context.Context, rate float64) (Outcome, error)

// Options are the options of a search. Zero values have defaults.
type Options struct {
	Trials    int     // maximum number of trials per load; 0 means 9
	Lossy     int     // lossy trials that a good load may have; negative means none, and 0 with Trials 0 means 2
	Precision float64 // relative distance of two loads; 0 means 0.01
	Least     float64 // lowest rate to try in bit/s; 0 means a thousandth of the start
	Most      float64 // highest rate to try in bit/s; 0 means no limit
	Start     float64 // where to start in bit/s; 0 means the goodput of a full blast
}

// A Result is the result of a search.
type Result struct {
	Rate   float64   // bit/s, as requested from the sender
	Trials int       // all trials, including full blasts and invalid ones
	Curve  []Outcome // all trials in order
	// Capped says that no load above Rate was found lossy, because the search started there, or
	// because Options.Most or the sender did not permit higher ones. The receiver may be able to
	// receive more.
	Capped bool
}

// The limits for repetitions.
const (
	maxInvalidTrials  = 3 // consecutive invalid trials of a load, after which the sender is considered not to reach it
	maxUnreachedLoads = 6 // consecutive loads that the sender does not reach, after which the search fails
)

// maxRate is the highest rate in bit/s that is tried if there is no other limit.
const maxRate = 1e15

func (o Options) withDefaults() Options {
	if o.Trials <= 0 {
		o.Trials = 9
		if o.Lossy == 0 {
			o.Lossy = 2
		}
	}
	o.Lossy = min(max(o.Lossy, 0), o.Trials-1)
	if !(o.Precision > 0) {
		o.Precision = 0.01
	}
	o.Precision = min(max(o.Precision, 1e-4), 1)
	if !(o.Most > 0) || o.Most > maxRate {
		o.Most = maxRate
	}
	if !(o.Least > 0) {
		o.Least = 0
	}
	o.Least = min(o.Least, o.Most)
	return o
}

// withBounds sets the defaults that depend on the start of the search.
func (o Options) withBounds(start float64) Options {
	if o.Least == 0 {
		o.Least = start / 1000
	}
	return o
}

// A trialLog runs trials and records them.
type trialLog struct {
	trial      Trial
	result     Result
	notReached int // consecutive loads
}

// runTrial runs a trial.
func (l *trialLog) runTrial(ctx context.Context, rate float64) (Outcome, error) {
	if err := ctx.Err(); err != nil {
		return Outcome{}, err
	}
	outcome, err := l.trial(ctx, rate)
	if err != nil {
		return Outcome{}, err
	}
	l.result.Curve = append(l.result.Curve, outcome)
	l.result.Trials = len(l.result.Curve)
	return outcome, nil
}

// runValid runs a trial and repeats it while it is invalid. If it returns an invalid outcome, the
// sender does not reach the load.
func (l *trialLog) runValid(ctx context.Context, rate float64) (Outcome, error) {
	fastest := 0.0
	for range maxInvalidTrials {
		outcome, err := l.runTrial(ctx, rate)
		if err != nil {
			return Outcome{}, err
		}
		if outcome.Valid {
			l.notReached = 0
			return outcome, nil
		}
		fastest = max(fastest, outcome.Achieved)
	}
	if l.notReached++; l.notReached >= maxUnreachedLoads || math.IsInf(rate, 1) {
		return Outcome{}, notReachedError(rate, fastest, maxInvalidTrials)
	}
	return Outcome{Rate: rate, Achieved: fastest}, nil
}

// start returns where to begin: the caller's rate, or the goodput of a full blast. If the sender is
// faster than the receiver, the goodput is the speed of the receiver. Loads above what was sent
// need no trial.
func (l *trialLog) start(ctx context.Context, from float64, o Options) (rate float64, blast Outcome, err error) {
	if from > 0 && !math.IsInf(from, 1) {
		return min(max(from, o.Least), o.Most), Outcome{}, nil
	}
	blast, err = l.runValid(ctx, math.Inf(1))
	if err != nil {
		return 0, blast, err
	}
	if !(blast.Achieved > 0) || math.IsInf(blast.Achieved, 1) {
		return 0, blast, problem.New(problem.Failed, "the sender sent nothing at full speed").Try("see the sender's output")
	}
	rate = blast.Goodput
	if !(rate > 0) {
		rate = blast.Achieved // an overloaded receiver may still receive something at this rate
	}
	if blast.Achieved < o.Least {
		return 0, blast, notReachedError(o.Least, blast.Achieved, 1)
	}
	return min(max(rate, o.Least), blast.Achieved, o.Most), blast, nil
}

func notReachedError(rate, achieved float64, trials int) error {
	return problem.New(problem.Failed, "the sender does not reach %s: it sent at most %s in %d trials", bits(rate),
		bits(achieved), trials).
		Try("give it more processor time or larger packets, or allow lower rates")
}

func alwaysLosesError(least float64) error {
	return problem.New(problem.Failed, "heaps are lost at every rate down to %s", bits(least)).
		Try("see where packets were dropped, or allow lower rates")
}
