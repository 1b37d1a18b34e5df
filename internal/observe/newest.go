package observe

import (
	"slices"

	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// maxPast is the maximum number of previous states that a record of releases lists. A host that was
// unreachable for more changes than this counts as one that disagrees.
const maxPast = 200

// State returns a name for the content of the record, or "" if the record is empty. Hosts with
// copies of a record use it to determine which one is newer.
func (r Releases) State() string {
	if r.ID != "" {
		return r.ID
	}
	if r = r.content(); len(r.Active)+len(r.Former)+len(r.Confirmed) == 0 && r.Switch == nil && r.Trial == nil &&
		r.Ended == nil {
		return ""
	}
	return spec.Digest(r)
}

// content returns the record without its name, and without the list of staged releases, which depends
// on the disk. It also leaves out the start of a trial, which each host determines itself.
func (r Releases) content() Releases {
	r.ID, r.Past, r.Staged = "", nil, nil
	if r.Trial != nil {
		trial := *r.Trial
		trial.SetDeadline(Timestamp{}, 0)
		trial.Failed = ""
		r.Trial = &trial
	}
	return r
}

// SuccessorOf returns the record as the successor of record before, with a new name. If two hosts had the
// same record and replace it by the same content, both compute the same name.
func (r Releases) SuccessorOf(before Releases) Releases {
	former := before.State()
	r.Staged = nil
	r.Past = slices.Clone(before.Past)
	if former != "" {
		r.Past = append(r.Past, former)
	}
	r.Past = r.Past[max(0, len(r.Past)-maxPast):]
	r.ID = spec.Digest([]any{former, r.content()})
	return r
}

// MergeIdentities returns the identity of several hosts' records, combined to one state that succeeds all of
// them.
func MergeIdentities(all []Releases) Releases {
	var merged Releases
	var states []string
	for _, r := range all {
		for _, state := range r.Past[max(0, len(r.Past)-maxPast):] { // a host may report more
			if !slices.Contains(merged.Past, state) {
				merged.Past = append(merged.Past, state)
			}
		}
		if state := r.State(); state != "" && !slices.Contains(states, state) {
			states = append(states, state)
		}
	}
	switch len(states) {
	case 0:
	case 1:
		merged.ID = states[0]
	default:
		merged.Past = append(merged.Past, states...)
		merged.ID = spec.Digest(states)
	}
	return merged
}

// newest returns the index of the word with the newest record. All other hosts must have that
// record or one of its predecessors. It also returns the hosts that are behind. If there is no such
// record, newest returns an error and does not guess.
func newest(words []ReleaseReport) (head int, behind []int, err error) {
	for i := 1; i < len(words); i++ {
		switch one, other := &words[head], &words[i]; {
		case one.State() != "" && one.State() == other.State() && !one.same(other.Releases):
			return 0, nil, problem.New(problem.Surprise,
				"hosts %s and %s have different records of releases with the same name: one of them was changed by hand",
				one.Host, other.Host).
				Try("compare releases.json of the site on both; --without leaves one out until then")
		case one.succeeds(&other.Releases):
		case other.succeeds(&one.Releases):
			head = i
		default:
			return 0, nil, problem.New(problem.Surprise,
				"hosts %s and %s disagree on which releases are live, and neither knows the record of the other", one.Host,
				other.Host).
				Try("they were changed independently of each other: remove releases.json of the site from the host whose record is wrong, which then adopts the other record; --without leaves one out until then")
		}
	}
	for i := range words {
		if words[i].State() != words[head].State() {
			behind = append(behind, i)
		}
	}
	return head, behind, nil
}

// same reports whether two records are equal except for what each host determines itself.
func (r *Releases) same(other Releases) bool {
	return spec.Digest(r.content()) == spec.Digest(other.content())
}

// succeeds reports whether a record is equal to another one, or a successor of it.
func (r *Releases) succeeds(other *Releases) bool {
	state := other.State()
	return state == "" || state == r.State() || slices.Contains(r.Past, state)
}
