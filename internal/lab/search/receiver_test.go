package search

import (
	"context"
	"math"
	"math/rand/v2"
)

// A receiver is simulated: how many of a trial's heaps it loses at a rate. A blast overruns it, and
// its goodput then is what it gets through with losses, which is well above what it gets through
// without.
type receiver struct {
	random *rand.Rand
	sender float64 // bit/s of a full blast
	blast  float64 // bit/s that it receives of one
	loses  loss
}

const perTrial = 100_000 // heaps

// A loss returns which share of heaps is lost at a rate.
type loss func(g *rand.Rand, rate float64) float64

func (r *receiver) try(_ context.Context, rate float64) (Outcome, error) {
	if math.IsInf(rate, 1) {
		return Outcome{Rate: rate, Achieved: r.sender, Goodput: r.blast, Sent: perTrial,
			Received: uint64(perTrial * min(1, r.blast/r.sender)), Valid: true}, nil
	}
	o := Outcome{Rate: rate, Achieved: rate, Goodput: rate, Sent: perTrial, Received: perTrial, Valid: true}
	if rate > r.sender*1.01 {
		o.Achieved, o.Valid = r.sender, false
	}
	o.Received -= uint64(math.Ceil(perTrial * max(0, r.loses(r.random, rate))))
	o.Goodput *= float64(o.Received) / perTrial
	return o, nil
}

// over is what a receiver of a capacity loses.
func over(rate, capacity float64) float64 { return 1 - capacity/rate }

// sharp: all is well up to the knee, and nothing above.
func sharp(knee float64) loss {
	return func(_ *rand.Rand, rate float64) float64 { return over(rate, knee) }
}

// soft: the nearer to the knee, the likelier is a loss; at the knee it is one in four trials, and
// from 10 to 90 % it is 4.4 widths. What is lost is little.
func soft(knee, width float64) loss {
	return func(g *rand.Rand, rate float64) float64 {
		if g.Float64() < 1/(1+3*math.Exp(-(rate/knee-1)/width)) {
			return max(0.0005, over(rate, knee))
		}
		return 0
	}
}

// noisy: the capacity is another in each trial.
func noisy(knee, deviation float64) loss {
	return func(g *rand.Rand, rate float64) float64 { return over(rate, knee*math.Exp(deviation*g.NormFloat64())) }
}

// sporadic: some trials lose a few heaps at any rate.
func sporadic(knee, probability float64) loss {
	return func(g *rand.Rand, rate float64) float64 {
		if g.Float64() < probability {
			return max(0.0002, over(rate, knee))
		}
		return over(rate, knee)
	}
}
