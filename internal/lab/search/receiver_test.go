package search

import (
	"context"
	"math"
	"math/rand/v2"
)

// A receiver simulates how many heaps of a trial are lost at a rate. A full blast overruns it. Its
// goodput is then what it receives with losses, which is well above what it receives without loss.
type receiver struct {
	random *rand.Rand
	sender float64 // rate of a full blast in bit/s
	blast  float64 // goodput of a full blast in bit/s
	loses  loss
}

const perTrial = 100_000 // heaps

// A loss returns the share of heaps that is lost at a rate.
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

// over returns the loss of a receiver with a capacity.
func over(rate, capacity float64) float64 { return 1 - capacity/rate }

// sharp has no loss up to the knee, and loss above.
func sharp(knee float64) loss {
	return func(_ *rand.Rand, rate float64) float64 { return over(rate, knee) }
}

// soft has a loss with a probability that rises towards the knee. At the knee it is one in four
// trials, and it rises from 10 to 90 % within 4.4 widths. The losses are small.
func soft(knee, width float64) loss {
	return func(g *rand.Rand, rate float64) float64 {
		if g.Float64() < 1/(1+3*math.Exp(-(rate/knee-1)/width)) {
			return max(0.0005, over(rate, knee))
		}
		return 0
	}
}

// noisy has a different capacity in each trial.
func noisy(knee, deviation float64) loss {
	return func(g *rand.Rand, rate float64) float64 { return over(rate, knee*math.Exp(deviation*g.NormFloat64())) }
}

// sporadic loses a few heaps in some trials at any rate.
func sporadic(knee, probability float64) loss {
	return func(g *rand.Rand, rate float64) float64 {
		if g.Float64() < probability {
			return max(0.0002, over(rate, knee))
		}
		return over(rate, knee)
	}
}
