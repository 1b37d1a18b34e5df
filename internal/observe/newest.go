package observe

import (
	"slices"

	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// known is how many former states a record of releases knows itself to come from. A host that has
// been away for longer is taken for one that disagrees.
const known = 200

// State names what is on record of releases, so that hosts that have copies of it can tell which is
// newer; "": nothing is.
func (r Releases) State() string {
	if r.ID != "" {
		return r.ID
	}
	if r = r.bare(); len(r.Active)+len(r.Former)+len(r.Confirmed) == 0 && r.Switch == nil && r.Trial == nil &&
		r.Ended == nil {
		return ""
	}
	return spec.Digest(r)
}

// bare returns what is on record without what that is named by, and what is on the disk beside it.
// When a trial begins is for each host to say.
func (r Releases) bare() Releases {
	r.ID, r.Past, r.Staged = "", nil, nil
	if r.Trial != nil {
		trial := *r.Trial
		trial.Begin(Moment{}, 0)
		trial.Failed = ""
		r.Trial = &trial
	}
	return r
}

// After returns what is put on record in the place of something, and names it. Of two hosts that
// had the same before, and put the same in its place, both name it so.
func (r Releases) After(before Releases) Releases {
	former := before.State()
	r.Staged = nil
	r.Past = slices.Clone(before.Past)
	if former != "" {
		r.Past = append(r.Past, former)
	}
	r.Past = r.Past[max(0, len(r.Past)-known):]
	r.ID = spec.Digest([]any{former, r.bare()})
	return r
}

// Merged names what several hosts have on record, as one state that comes from all of theirs.
func Merged(all []Releases) Releases {
	var merged Releases
	var states []string
	for _, r := range all {
		for _, state := range r.Past[max(0, len(r.Past)-known):] { // a host may say more
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

// newest returns the word with the newest record, which all other hosts had before or have as well,
// and the hosts that are behind. If there is none, that is an error: nobody guesses then.
func newest(words []Word) (head int, behind []int, err error) {
	for i := 1; i < len(words); i++ {
		switch one, other := &words[head], &words[i]; {
		case one.State() != "" && one.State() == other.State() && !one.same(other.Releases):
			return 0, nil, problem.New(problem.Surprise,
				"hosts %s and %s have different things on record of releases under the same name, so one of them was changed by hand",
				one.Host, other.Host).
				Try("look at releases.json of the site on both; --without leaves one out until then")
		case one.succeeds(&other.Releases):
		case other.succeeds(&one.Releases):
			head = i
		default:
			return 0, nil, problem.New(problem.Surprise,
				"hosts %s and %s disagree on which releases are live, and neither knows what the other has on record", one.Host,
				other.Host).
				Try("they were steered apart from one another: decide which is right, and remove releases.json of the site from the other, which then takes over the record; --without leaves one out until then")
		}
	}
	for i := range words {
		if words[i].State() != words[head].State() {
			behind = append(behind, i)
		}
	}
	return head, behind, nil
}

// same reports whether two records say the same, apart from what is for each host to say.
func (r *Releases) same(other Releases) bool {
	return spec.Digest(r.bare()) == spec.Digest(other.bare())
}

// succeeds reports whether a record is the same as another, or comes from it.
func (r *Releases) succeeds(other *Releases) bool {
	state := other.State()
	return state == "" || state == r.State() || slices.Contains(r.Past, state)
}
