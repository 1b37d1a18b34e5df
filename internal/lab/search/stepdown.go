package search

import "context"

// stepDown is the relative step of the rate.
const stepDown = 0.01

// cleanTrials is the number of consecutive trials that must be clean.
const cleanTrials = 3

// StepDown is the search of the KAT-7 measurements of 2013. It lowers the rate by 1 % until three
// consecutive trials are clean. A lossy trial ends a load at once. It starts at from, or if that is
// 0 or +Inf, at the goodput of a full blast. It uses only the options Least and Most.
//
// Loads that the sender does not reach are skipped. If it does not reach six in a row (the constant
// unreachable), StepDown returns an error.
func StepDown(ctx context.Context, from float64, o Options, trial Trial) (Result, error) {
	l := trialLog{trial: trial}
	o = o.withDefaults()
	rate, _, err := l.start(ctx, from, o)
	if err != nil {
		return l.result, err
	}
	o = o.withBounds(rate)
	for capped := true; rate >= o.Least; rate *= 1 - stepDown {
		last, err := l.runRow(ctx, rate)
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
			rate *= 1 - stepDown // skip what the sender cannot reach
		}
	}
	return l.result, alwaysLosesError(o.Least)
}

// runRow runs a row of trials and returns the last one, which is clean if all are.
func (l *trialLog) runRow(ctx context.Context, rate float64) (last Outcome, err error) {
	for range cleanTrials {
		last, err = l.runValid(ctx, rate)
		if err != nil || !last.Clean() {
			return last, err
		}
	}
	return last, nil
}
