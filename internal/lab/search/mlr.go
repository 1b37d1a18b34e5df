package search

import (
	"context"
	"math"
)

// MLR searches like RFC 9971 (MLRsearch). A load is good if at most o.Lossy of o.Trials trials are
// lossy. The result is the highest good load such that no lower decided load is bad, while the next
// one, o.Precision higher, is bad.
//
// A load is decided as soon as the remaining trials cannot change the result: with 9 and 2, by 7
// clean or by 3 lossy trials. As clean loads are expensive, only few are tested fully. As in the
// RFC, the number of trials grows from phase to phase:
//
//  1. A full blast. The search starts at its goodput, or 8 % below if it lost heaps.
//  2. Single trials: steps down while lossy, or up while clean, each twice as long as the one
//     before. Then geometric bisection. A single trial that lost less than one heap in a thousand is
//     not enough, because such a loss may be independent of the rate.
//  3. The two remaining neighbours are decided, the upper first, which costs two more trials if it
//     is bad. If both are as they looked, that is the result.
//  4. Otherwise 2 and 3 are repeated from there with two trials out of three, and if necessary once
//     more with loads decided fully.
//
// Loads are on a grid that depends only on o.Most and o.Precision. So ten searches of a receiver
// with a sharp knee have the same result, and no load has two representations. A load that the
// sender does not reach limits the search like a bad one, and Result.Capped says so. TestTrials
// compares MLR with StepDown: it takes half of the trials or less if a full blast gets through half
// as much again as is received without loss. An error comes with the curve so far. It is the
// trial's own error, the context's error, that the sender reaches nothing, or that every load is
// bad.
func MLR(ctx context.Context, o Options, trial Trial) (Result, error) {
	m := mlr{trialLog: trialLog{trial: trial}, Options: o.withDefaults(), loads: map[int]*load{}}
	err := m.search(ctx)
	return m.result, err
}

type mlr struct {
	trialLog
	Options
	loads     map[int]*load // by index in the grid
	good, bad int           // the highest good load below the lowest bad one; outside the grid if none is decided
	top       int           // of the grid
	phase     int
}

// A load is what is known about a rate.
type load struct {
	clean, lossy int
	slight       bool // of the last loss
	beyond       bool // the sender does not reach it
}

// slightLoss is the share of heaps below which a loss may be independent of the rate. A load that is
// too high by 1 % loses about 1 % of the heaps.
const slightLoss = 0.001

// firstStep is the first step in loads, which is 8 % with a precision of 1 %. It is a power of two
// because bisection follows.
const firstStep = 8

// nearStep is the first step if the caller provides the start, which is based on an earlier search.
const nearStep = 2

// minTrials is the number of trials of one kind for each phase. In the last phase, loads are
// decided.
var minTrials = [...]int{1, 2, math.MaxInt}

func (m *mlr) search(ctx context.Context) error {
	start, blast, err := m.start(ctx, m.Start, m.Options)
	if err != nil {
		return err
	}
	m.Options = m.withBounds(start)
	at := m.indexBelow(start)
	if blast.Achieved > 0 {
		m.top = max(at, m.indexBelow(min(blast.Achieved, m.Most)))
	}
	m.good, m.bad = min(-m.stepsDown(m.Least), m.top)-1, m.top+1 // outside the grid
	switch {
	case blast.Achieved == 0:
		return m.narrow(ctx, at, nearStep)
	case blast.Clean():
		return m.narrow(ctx, at, firstStep)
	}
	return m.narrow(ctx, at-firstStep, firstStep)
}

// narrow narrows the interval between good and bad, starting at a load, until they are neighbours.
func (m *mlr) narrow(ctx context.Context, at, step int) error {
	none := m.good
	for m.bad-m.good > 1 {
		low, high, err := m.bracket(ctx, min(max(at, m.good+1), m.bad-1), step)
		if err != nil {
			return err
		}
		at, step, err = m.confirm(ctx, low, high)
		if err != nil {
			return err
		}
		m.phase = min(m.phase+1, len(minTrials)-1)
	}
	if m.good == none {
		return alwaysLosesError(m.rate(m.bad))
	}
	m.result.Rate = m.rate(m.good)
	m.result.Capped = m.bad > m.top
	return nil
}

// bracket finds two neighbours of which the lower looks good and the upper bad. One of them may be
// m.good or m.bad.
func (m *mlr) bracket(ctx context.Context, at, step int) (low, high int, err error) {
	low, high = m.good, m.bad
	look := func(at int) (bool, error) {
		good, err := m.looksGood(ctx, at, minTrials[m.phase])
		if good {
			low = at
		} else {
			high = at
		}
		return good, err
	}
	up, err := look(at)
	if !up {
		step = -step
	}
	for good := up; err == nil && good == up && low < at+step && at+step < high; step *= 2 {
		at += step
		good, err = look(at)
	}
	for err == nil && high-low > 1 {
		_, err = look(low + (high-low)/2)
	}
	return low, high, err
}

// confirm decides two neighbours. If they are not as they looked, it returns where to continue and
// with what step.
func (m *mlr) confirm(ctx context.Context, low, high int) (at, step int, err error) {
	if high < m.bad {
		good, err := m.looksGood(ctx, high, math.MaxInt)
		if err != nil {
			return 0, 0, err
		}
		if good {
			m.good = high
			return high + 1, 1, nil
		}
		m.bad = high
	}
	if low > m.good {
		good, err := m.looksGood(ctx, low, math.MaxInt)
		if err != nil {
			return 0, 0, err
		}
		if !good {
			m.bad = low
			return low - 1, 1, nil
		}
		m.good = low
	}
	return 0, 1, nil
}

// looksGood runs trials at a load until the given number is clean or lossy, or the load is decided.
func (m *mlr) looksGood(ctx context.Context, at, enough int) (good bool, err error) {
	l := m.loads[at]
	if l == nil {
		l = &load{}
		m.loads[at] = l
	}
	for {
		losses := enough
		if l.slight && enough == 1 {
			losses = 2
		}
		switch {
		case l.beyond, l.lossy >= min(losses, m.Lossy+1):
			return false, nil
		case l.clean >= min(enough, m.Trials-m.Lossy):
			return true, nil
		}
		if at > m.top {
			return false, nil
		}
		outcome, err := m.runValid(ctx, m.rate(at))
		switch {
		case err != nil:
			return false, err
		case !outcome.Valid:
			l.beyond = true
			// loads above what was sent need no trial
			m.top = min(m.top, at-1, max(m.indexBelow(outcome.Achieved), m.good+1))
		case outcome.Clean():
			l.clean++
		default:
			l.lossy++
			l.slight = float64(outcome.Sent-outcome.Received) < slightLoss*float64(outcome.Sent)
		}
	}
}

// rate returns the load at an index of the grid. Index 0 is Most, and lower loads have negative
// indices.
func (m *mlr) rate(at int) float64 {
	return min(m.Most, m.Most*math.Pow(1+m.Precision, float64(at)))
}

// indexBelow returns the highest index whose load is not above a rate.
func (m *mlr) indexBelow(rate float64) int { return min(0, int(math.Floor(m.position(rate)+rounding))) }

// stepsDown returns minus the lowest index whose load is not below a rate.
func (m *mlr) stepsDown(rate float64) int { return max(0, -int(math.Ceil(m.position(rate)-rounding))) }

func (m *mlr) position(rate float64) float64 { return math.Log(rate/m.Most) / math.Log1p(m.Precision) }

// rounding is the tolerance of an index, so that a load is found at its own index.
const rounding = 1e-6
