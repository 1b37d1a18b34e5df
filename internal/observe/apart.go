package observe

import (
	"maps"
	"slices"

	"orrery/internal/problem"
)

// diverged reports whether hosts have ended a trial differently. Some have gone back on their own, or
// are about to. Others have not, or were told that the release is confirmed. The nodes then have
// more than one release, whatever is recorded.
//
// diverged returns the record that all hosts must store. It has an interrupted switch that ends at the
// release before the trial. For each node, that is the release in the record of its own host. A
// release that is not confirmed on all hosts is not confirmed.
func diverged(words []ReleaseReport, owner Owner) (agreed Releases, why string, ok bool) {
	for i := range words {
		gone := &words[i]
		if gone.wentBack() == nil {
			continue
		}
		for j := range words {
			stays := &words[j]
			if j == i || stays.State() == gone.State() || !stays.hasTrialEndedBy(&gone.Releases) {
				continue
			}
			to, end := map[string]int{}, map[string]int{}
			release, nodes := stays.onTrial()
			for _, node := range slices.AppendSeq(nodes, maps.Keys(gone.wentBack())) {
				speaks := stays
				if on := owner(node); on >= 0 && words[on].State() != "" {
					speaks = &words[on]
				}
				if back, known := speaks.returnRelease(node); known {
					to[node], end[node] = release, back
				}
			}
			agreed = stays.Releases
			agreed.Staged, agreed.Trial, agreed.Switch, agreed.Ended = nil, nil,
				&Switch{To: to, End: end, Who: "whoever began the trial"}, gone.reverted(end)
			return agreed, "hosts " + gone.Host + " and " + stays.Host + " ended a trial independently of each other", true
		}
	}
	return agreed, "", false
}

// wentBack returns the releases to which a host has gone back on its own, or is about to, or nil.
func (r *Releases) wentBack() map[string]int {
	switch {
	case r.Switch != nil && r.Switch.Alone:
		return r.Switch.End
	case r.Switch == nil && r.Trial == nil && r.Ended != nil && r.Ended.Result == Reverted:
		return r.Ended.Back
	}
	return nil
}

// returnRelease returns the release to which a node returns, or has returned, if the release on trial is not
// confirmed on all hosts.
func (r *Releases) returnRelease(node string) (release int, known bool) {
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
// all other hosts were told.
func (r *Releases) unsettled() bool {
	return r.Ended != nil && r.Ended.Result == Confirmed && !r.Ended.Settled
}

// hasTrialEndedBy reports whether the host has a trial that another host has ended by going back. The host
// either has it still on trial, or is also going back, or was told that the release is confirmed.
func (r *Releases) hasTrialEndedBy(back *Releases) bool {
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

// reverted returns the end of the trial that a host has gone back from, for all nodes in back. It
// returns nil if the host has not finished going back.
func (r *Releases) reverted(back map[string]int) *TrialEnd {
	if r.Switch != nil || r.Ended == nil {
		return nil
	}
	ended := *r.Ended
	ended.Back, ended.Why = back, problem.Truncate(ended.Why, 300)
	return &ended
}
