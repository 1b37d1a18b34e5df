package trial

import (
	"maps"
	"time"

	"orrery/internal/observe"
)

// EndRecord returns the record of a trial that ends now.
func EndRecord(trial *observe.Trial, result, why string) *observe.TrialEnd {
	end := &observe.TrialEnd{Release: trial.Release, Result: result, Why: why,
		When: time.Now().UTC().Truncate(time.Second)}
	if result == observe.Reverted {
		end.Back = trial.Back
	}
	return end
}

// RollbackRecord returns the record of a trial that ends with a switch back, or nil if none does.
func RollbackRecord(trial *observe.Trial, back bool, why string) *observe.TrialEnd {
	if trial == nil || !back {
		return nil
	}
	return EndRecord(trial, observe.Reverted, why)
}

// RecoveryRecord returns the record of a trial that ends with the completion of an interrupted switch.
// If hosts have ended the trial separately, it is the record of the first of them.
func RecoveryRecord(r observe.Releases, back bool, why string) *observe.TrialEnd {
	if r.Trial == nil && r.Ended != nil && r.Ended.Result == observe.Reverted && maps.Equal(r.Ended.Back, r.Switch.End) {
		return r.Ended
	}
	return RollbackRecord(r.Trial, back, why)
}

// ReasonRolledBack is the reason recorded when a user ends a trial by a rollback.
const ReasonRolledBack = "it was rolled back"
