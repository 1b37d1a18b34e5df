package search

import "context"

// stepDown is by how much the rate is lowered.
const stepDown = 0.01

// row is how many trials must be clean, one after another.
const row = 3

// StepDown is the search of the KAT-7 measurements of 2013: lower the rate by 1 % until three
// trials in a row are clean. A lossy trial ends a load at once. It starts at from, or, with 0 or +Inf,
// at the goodput of a full blast. Of the options, Least and Most count.
//
// Loads that the sender does not reach are passed over; when it does not reach four in a row, that
// is the error.
func StepDown(ctx context.Context, from float64, o Options, trial Trial) (Result, error) {
	l := log{trial: trial}
	o = o.filled()
	rate, _, err := l.start(ctx, from, o)
	if err != nil {
		return l.result, err
	}
	o = o.bound(rate)
	for capped := true; rate >= o.Least; rate *= 1 - stepDown {
		last, err := l.row(ctx, rate)
		if err != nil {
			return l.result, err
		}
		if last.Clean() {
			l.result.Rate, l.result.Capped = rate, capped
			return l.result, nil
		}
		if last.Valid {
			capped = false
			continue
		}
		for rate*(1-stepDown) > max(last.Achieved, o.Least) {
			rate *= 1 - stepDown // what the sender cannot do, it need not try
		}
	}
	return l.result, losesAlways(o.Least)
}

// row returns the last of a row of trials, which is clean if all are.
func (l *log) row(ctx context.Context, rate float64) (last Outcome, err error) {
	for range row {
		last, err = l.valid(ctx, rate)
		if err != nil || !last.Clean() {
			return last, err
		}
	}
	return last, nil
}
