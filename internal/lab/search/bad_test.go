package search

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"orrery/internal/problem"
)

// both holds both searches by name.
var both = map[string]func(context.Context, Options, Trial) (Result, error){
	"MLR": MLR,
	"StepDown": func(ctx context.Context, o Options, trial Trial) (Result, error) {
		return StepDown(ctx, o.Start, o, trial)
	},
}

// TestTerminates: for any outcomes of trials, both searches end within a bound, record every trial,
// and find nothing above Most or below Least.
func TestTerminates(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		o := Options{
			Trials: rapid.IntRange(-1, 12).Draw(r, "trials"), Lossy: rapid.IntRange(-1, 12).Draw(r, "lossy"),
			Precision: rapid.SampledFrom([]float64{0, 0.01, 0.05, math.NaN()}).Draw(r, "precision"),
			Least:     rapid.SampledFrom([]float64{0, -1, 1e6, 1e9, math.NaN()}).Draw(r, "least"),
			Most:      rapid.SampledFrom([]float64{0, -1, 1e7, 1e9, 3e9, math.Inf(1)}).Draw(r, "most"),
			Start:     rapid.SampledFrom([]float64{0, -1, 1e6, 1e9, 7e9, math.Inf(1), math.NaN()}).Draw(r, "start"),
		}
		values := rapid.SampledFrom([]float64{0, 1, 1e6, 1e9, 3e9, 1e15, math.Inf(1), math.NaN(), -1})
		invalid := rapid.IntRange(0, 4).Draw(r, "invalid") // in ten trials
		kind := rapid.IntRange(0, 2).Draw(r, "kind")
		capacity := rapid.Float64Range(1e5, 1e10).Draw(r, "capacity")
		for name, how := range both {
			done := 0
			result, err := how(context.Background(), o, func(_ context.Context, rate float64) (Outcome, error) {
				done++
				if done > 5000 {
					r.Fatalf("%s does not end: %+v", name, o)
				}
				if !(rate > 0) {
					r.Fatalf("%s asks for %g", name, rate)
				}
				out := Outcome{Rate: rate, Sent: 100, Received: 100, Valid: rapid.IntRange(0, 9).Draw(r, "valid") >= invalid}
				switch kind {
				case 0: // arbitrary outcomes
					out.Achieved, out.Goodput = values.Draw(r, "achieved"), values.Draw(r, "goodput")
					out.Received -= uint64(rapid.IntRange(0, 1).Draw(r, "lost"))
				case 1: // like a receiver
					out.Achieved, out.Goodput = min(rate, 2e10), min(rate, capacity)
					if out.Achieved > capacity {
						out.Received = 50
					}
				default: // alternating bands
					out.Achieved, out.Goodput = min(rate, 2e10), min(rate, 1e10)
					if math.IsInf(rate, 1) || int(math.Log(rate)*30)%2 == 0 {
						out.Received = 99
					}
				}
				return out, nil
			})
			if result.Trials != done || len(result.Curve) != done {
				r.Fatalf("%s: %d trials, %d in the curve, %d told", name, done, len(result.Curve), result.Trials)
			}
			// below the grid's lowest load
			tooLow := o.Least > 0 && !(o.Most > 0 && o.Most < o.Least) && result.Rate < o.Least*0.94
			if err == nil && (!(result.Rate > 0) || o.Most > 0 && result.Rate > o.Most || tooLow) {
				r.Fatalf("%s: found %g with %+v", name, result.Rate, o)
			}
			if name == "MLR" && o.Trials <= 9 && o.Precision != 0.05 && done > 1000 {
				r.Fatalf("%d trials", done)
			}
		}
	})
}

// TestInvalid: an invalid trial is neither clean nor lossy, and is repeated.
func TestInvalid(t *testing.T) {
	for name, how := range both {
		r := &receiver{sender: 3e9, blast: 2e9, loses: sharp(knee)}
		done := 0
		found, err := how(context.Background(), Options{}, func(ctx context.Context, rate float64) (Outcome, error) {
			o, err := r.try(ctx, rate)
			if done++; done%3 == 0 {
				o.Valid, o.Received = false, 0
			}
			return o, err
		})
		if err != nil || found.Rate > knee || found.Rate < 0.98*knee {
			t.Errorf("%s: %g, %v", name, found.Rate, err)
		}
	}
}

// TestErrors: each error describes the problem, and the curve is there.
func TestErrors(t *testing.T) {
	broken := errors.New("the receiver is gone")
	for say, trial := range map[string]Trial{
		"the sender does not reach full speed": func(_ context.Context, rate float64) (Outcome, error) {
			return Outcome{Rate: rate, Achieved: 1e6, Goodput: 1e6, Sent: 5, Received: 5}, nil
		},
		"the sender does not reach": func(_ context.Context, rate float64) (Outcome, error) {
			return Outcome{Rate: rate, Achieved: min(rate/2, 1e9), Goodput: 1e9, Sent: 5, Received: 5,
				Valid: math.IsInf(rate, 1)}, nil
		},
		"heaps are lost at every rate": func(_ context.Context, rate float64) (Outcome, error) {
			return Outcome{Rate: rate, Achieved: min(rate, 1e9), Goodput: 1e8, Sent: 5, Received: 4, Valid: true}, nil
		},
		"sent nothing": func(_ context.Context, rate float64) (Outcome, error) {
			return Outcome{Rate: rate, Valid: true}, nil
		},
	} {
		for name, how := range both {
			found, err := how(context.Background(), Options{}, trial)
			var p *problem.Problem
			if !errors.As(err, &p) || !strings.Contains(p.What, say) || p.Cure == "" || found.Trials == 0 {
				t.Errorf("%s: %v, after %d trials; wanted %q", name, err, found.Trials, say)
			}
		}
	}
	for name, how := range both {
		fails := func(context.Context, float64) (Outcome, error) { return Outcome{}, broken }
		if _, err := how(context.Background(), Options{}, fails); !errors.Is(err, broken) {
			t.Errorf("%s: %v", name, err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		r := &receiver{sender: 3e9, blast: 2e9, loses: sharp(knee)}
		found, err := how(ctx, Options{}, func(ctx context.Context, rate float64) (Outcome, error) {
			cancel()
			return r.try(ctx, rate)
		})
		if !errors.Is(err, context.Canceled) || found.Trials != 1 {
			t.Errorf("%s, cancelled: %v after %d trials", name, err, found.Trials)
		}
	}
}
