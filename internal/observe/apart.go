package observe

import (
	"maps"
	"slices"
)

// Apart tells whether hosts have ended a trial apart from one another: some have gone back by themselves, or are about to, and others have not, or have been told that the release is
// confirmed. Then the set is at more than one release, whatever is on record of it. What it gives is what all of them are to have on record: a switch that was interrupted, which ends where
// those are that have gone back. A release that is not confirmed on all hosts is not confirmed.
func Apart(all []Releases) (agreed Releases, is bool) {
	for i := range all {
		back := all[i].wentBack()
		if back == nil {
			continue
		}
		for j := range all {
			if j == i || all[j].State() == all[i].State() || !all[j].tried(&all[i]) {
				continue
			}
			agreed = all[i]
			release := 0
			if agreed.Trial != nil {
				release = agreed.Trial.Release
			} else if agreed.Ended != nil {
				release = agreed.Ended.Release
			}
			to := map[string]int{}
			for name := range back {
				to[name] = release
			}
			agreed.Staged, agreed.Trial, agreed.Switch = nil, nil, &Switch{To: to, End: maps.Clone(back), Who: "whoever began the trial"}
			return agreed, true
		}
	}
	return agreed, false
}

// wentBack gives where a host has gone by itself, or is about to go; nil: nowhere.
func (r *Releases) wentBack() map[string]int {
	switch {
	case r.Switch != nil && r.Switch.Alone:
		return r.Switch.End
	case r.Switch == nil && r.Trial == nil && r.Ended != nil && r.Ended.Result == Reverted:
		return r.Ended.Back
	}
	return nil
}

// tried reports whether a host has still on trial what another has gone back from, or is going back from it, or has been told that it is confirmed.
func (r *Releases) tried(back *Releases) bool {
	before := slices.Contains(back.Past, r.State())
	switch {
	case r.Switch != nil && r.Switch.Alone, r.Trial != nil && r.Switch == nil:
		return before
	}
	return r.Ended != nil && r.Ended.Result == Confirmed && !before && len(r.Past) > 0 && slices.Contains(back.Past, r.Past[len(r.Past)-1])
}
