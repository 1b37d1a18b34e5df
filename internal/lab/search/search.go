// Package search finds the highest rate at which a receiver loses nothing, in few trials. It is
// pure: what a trial is, the caller says.
package search

import (
	"context"
	"math"

	"orrery/internal/problem"
)

// An Outcome is what one trial gave.
type Outcome struct {
	Rate     float64 // bit/s that were asked for; +Inf: a full blast
	Achieved float64 // bit/s that were sent
	Goodput  float64 // bit/s that were received
	Sent     uint64  // heaps
	Received uint64  // heaps
	Valid    bool    // the sender reached the rate: a trial that is not valid says nothing of the receiver
}

// Clean says that the trial is valid and nothing was lost. A valid trial that is not clean is lossy.
func (o Outcome) Clean() bool { return o.Valid && o.Received == o.Sent }

// A Trial does one trial at a rate in bit/s; +Inf: a full blast, as fast as the sender can, which
// is valid at any rate. An error ends the search.
type Trial func(ctx context.Context, rate float64) (Outcome, error)

// Options of a search. What is zero is as said.
type Options struct {
	Trials    int     // that a load is given, at most; 0: 9
	Lossy     int     // of these may be lossy, and the load still is good; negative: none, and 0 with Trials 0: 2
	Precision float64 // relative distance of two loads; 0: 0.01
	Least     float64 // bit/s below which nothing is tried; 0: a thousandth of where the search starts
	Most      float64 // bit/s above which nothing is tried; 0: none
	Start     float64 // bit/s; 0: the goodput of a full blast
}

// A Result is what a search found.
type Result struct {
	Rate   float64   // bit/s, as asked of the sender
	Trials int       // all of them, full blast and invalid ones included
	Curve  []Outcome // of each trial, in the order they were done
	// Capped says that no load above Rate was found lossy, because the search began there, or because
	// Options.Most or the sender allowed none: the receiver may be able to take more.
	Capped bool
}

// The bounds of what is tried again.
const (
	tries       = 3 // of a load, in a row, that are not valid: then the sender does not reach it
	unreachable = 6 // loads in a row that the sender does not reach: then it is not the load
)

// utmost is the highest rate, in bit/s, that is tried if nothing else bounds it.
const utmost = 1e15

func (o Options) filled() Options {
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
	if !(o.Most > 0) || o.Most > utmost {
		o.Most = utmost
	}
	if !(o.Least > 0) {
		o.Least = 0
	}
	o.Least = min(o.Least, o.Most)
	return o
}

// bound sets what follows from where the search starts.
func (o Options) bound(start float64) Options {
	if o.Least == 0 {
		o.Least = start / 1000
	}
	return o
}

// A log does trials and keeps them.
type log struct {
	trial      Trial
	result     Result
	notReached int // loads in a row
}

// once does a trial.
func (l *log) once(ctx context.Context, rate float64) (Outcome, error) {
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

// valid does a trial, and again as long as it is not valid. An outcome that is not valid is one of
// a load that the sender does not reach.
func (l *log) valid(ctx context.Context, rate float64) (Outcome, error) {
	fastest := 0.0
	for range tries {
		outcome, err := l.once(ctx, rate)
		if err != nil {
			return Outcome{}, err
		}
		if outcome.Valid {
			l.notReached = 0
			return outcome, nil
		}
		fastest = max(fastest, outcome.Achieved)
	}
	if l.notReached++; l.notReached >= unreachable || math.IsInf(rate, 1) {
		return Outcome{}, notReached(rate, fastest, tries)
	}
	return Outcome{Rate: rate, Achieved: fastest}, nil
}

// start returns where to begin: where the caller says, or the goodput of a full blast. A sender
// that the receiver cannot keep up with says how fast the receiver is; no load above what was sent
// is worth a trial.
func (l *log) start(ctx context.Context, from float64, o Options) (rate float64, blast Outcome, err error) {
	if from > 0 && !math.IsInf(from, 1) {
		return min(max(from, o.Least), o.Most), Outcome{}, nil
	}
	blast, err = l.valid(ctx, math.Inf(1))
	if err != nil {
		return 0, blast, err
	}
	if !(blast.Achieved > 0) || math.IsInf(blast.Achieved, 1) {
		return 0, blast, problem.New(problem.Failed, "nothing was sent in a full blast").Try("see what the sender printed")
	}
	rate = blast.Goodput
	if !(rate > 0) {
		rate = blast.Achieved // a receiver that drowns in a blast may still take some of it
	}
	if blast.Achieved < o.Least {
		return 0, blast, notReached(o.Least, blast.Achieved, 1)
	}
	return min(max(rate, o.Least), blast.Achieved, o.Most), blast, nil
}

func notReached(rate, achieved float64, trials int) error {
	return problem.New(problem.Failed, "the sender does not reach %s: it sent %s at most, trials: %d", bits(rate),
		bits(achieved), trials).
		Try("give it more processor time, larger packets or a lower bound of the rate")
}

func losesAlways(least float64) error {
	return problem.New(problem.Failed, "heaps are lost at every rate down to %s", bits(least)).
		Try("look at where packets died, or set a lower least rate")
}
