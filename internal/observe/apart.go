package observe

import (
	"maps"
	"slices"

	"orrery/internal/problem"
)

// apart reports whether hosts have ended a trial apart from one another: some have gone back by
// themselves, or are about to, and others have not, or have been told that the release is
// confirmed. Then the set is at more than one release, whatever is on record of it. It returns what
// all of them are to have on record: a switch that was interrupted, which ends where the trial goes
// back to, as each host has it on record for its own nodes. A release that is not confirmed on all
// hosts is not confirmed.
func apart(words []Word, owner Owner) (agreed Releases, why string, ok bool) {
	for i := range words {
		gone := &words[i]
		if gone.wentBack() == nil {
			continue
		}
		for j := range words {
			stays := &words[j]
			if j == i || stays.State() == gone.State() || !stays.tried(&gone.Releases) {
				continue
			}
			to, end := map[string]int{}, map[string]int{}
			release, nodes := stays.onTrial()
			for _, node := range slices.AppendSeq(nodes, maps.Keys(gone.wentBack())) {
				speaks := stays
				if on := owner(node); on >= 0 && words[on].State() != "" {
					speaks = &words[on]
				}
				if back, known := speaks.back(node); known {
					to[node], end[node] = release, back
				}
			}
			agreed = stays.Releases
			agreed.Staged, agreed.Trial, agreed.Switch, agreed.Ended = nil, nil,
				&Switch{To: to, End: end, Who: "whoever began the trial"}, gone.reverted(end)
			return agreed, "hosts " + gone.Host + " and " + stays.Host + " ended a trial apart from one another", true
		}
	}
	return agreed, "", false
}

// wentBack returns where a host has gone by itself, or is about to go, or nil.
func (r *Releases) wentBack() map[string]int {
	switch {
	case r.Switch != nil && r.Switch.Alone:
		return r.Switch.End
	case r.Switch == nil && r.Trial == nil && r.Ended != nil && r.Ended.Result == Reverted:
		return r.Ended.Back
	}
	return nil
}

// back returns where a node goes, or has gone, if the release that is on trial is not confirmed on all hosts.
func (r *Releases) back(node string) (release int, known bool) {
	switch {
	case r.wentBack() != nil:
		release, known = r.wentBack()[node]
	case r.Trial != nil:
		release, known = r.Trial.Back[node]
	case r.unsettled():
		release, known = r.Former[node]
	}
	return release, known
}

// unsettled reports whether a host was told that a release is confirmed, and does not know whether
// all others were.
func (r *Releases) unsettled() bool {
	return r.Ended != nil && r.Ended.Result == Confirmed && !r.Ended.Settled
}

// tried reports whether a host has still on trial what another has gone back from, or is going back
// from it, or has been told that it is confirmed.
func (r *Releases) tried(back *Releases) bool {
	before := slices.Contains(back.Past, r.State())
	switch {
	case r.Switch != nil && r.Switch.Alone, r.Trial != nil && r.Switch == nil:
		return before
	}
	return r.unsettled() && !before && len(r.Past) > 0 && slices.Contains(back.Past, r.Past[len(r.Past)-1])
}

// onTrial returns the release that is on trial or was confirmed, and its nodes.
func (r *Releases) onTrial() (release int, nodes []string) {
	switch {
	case r.Trial != nil:
		return r.Trial.Release, slices.Collect(maps.Keys(r.Trial.Back))
	case r.Ended == nil:
		return 0, nil
	}
	for node := range r.Former {
		if r.Active[node] == r.Ended.Release {
			nodes = append(nodes, node)
		}
	}
	return r.Ended.Release, nodes
}

// reverted returns how the trial has ended that a host has gone back from, for all nodes of the
// set, or nil if it has not yet.
func (r *Releases) reverted(back map[string]int) *TrialEnd {
	if r.Switch != nil || r.Ended == nil {
		return nil
	}
	ended := *r.Ended
	ended.Back, ended.Why = back, problem.Short(ended.Why, 300)
	return &ended
}
