package trial

import (
	"maps"
	"time"

	"orrery/internal/observe"
)

// End returns the record of a trial that ends now.
func End(trial *observe.Trial, result, why string) *observe.TrialEnd {
	end := &observe.TrialEnd{Release: trial.Release, Result: result, Why: why,
		When: time.Now().UTC().Truncate(time.Second)}
	if result == observe.Reverted {
		end.Back = trial.Back
	}
	return end
}

// WentBack returns the record of a trial that ends with a switch back, or nil if none does.
func WentBack(trial *observe.Trial, back bool, why string) *observe.TrialEnd {
	if trial == nil || !back {
		return nil
	}
	return End(trial, observe.Reverted, why)
}

// Recovered returns the record of a trial that ends with the completion of an interrupted switch.
// If hosts have ended the trial separately, it is the record of the first of them.
func Recovered(r observe.Releases, back bool, why string) *observe.TrialEnd {
	if r.Trial == nil && r.Ended != nil && r.Ended.Result == observe.Reverted && maps.Equal(r.Ended.Back, r.Switch.End) {
		return r.Ended
	}
	return WentBack(r.Trial, back, why)
}

// RolledBack is the reason recorded when a user ends a trial by a rollback.
const RolledBack = "it was rolled back"
