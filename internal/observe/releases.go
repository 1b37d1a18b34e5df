package observe

import (
	"maps"
	"slices"
	"time"
)

// Releases is what a host keeps of the releases of a site: which is live, which was before, and
// what is under way.
type Releases struct {
	Active map[string]int `json:"active,omitempty"` // node -> release that is live; one that is not in it is of none
	// node -> release that was live before, to which rollback returns
	Former    map[string]int `json:"former,omitempty"`
	Confirmed []int          `json:"confirmed,omitempty"` // releases that have proven themselves, the latest last
	Switch    *Switch        `json:"switch,omitempty"`    // under way, or interrupted
	Trial     *Trial         `json:"trial,omitempty"`     // of the live release, until it is confirmed
	Ended     *TrialEnd      `json:"ended,omitempty"`     // how the last trial ended
	Staged    []int          `json:"staged,omitempty"`    // all that are kept here, sorted

	ID   string   `json:"id,omitempty"`   // names what is on record; see After
	Past []string `json:"past,omitempty"` // what was before it, the latest last
}

// A Switch is written down before anything of it is done, so that whoever comes after a kill knows
// where it is to end.
type Switch struct {
	To    map[string]int `json:"to"`
	End   map[string]int `json:"end"` // where the set goes if it is interrupted: back, or for a rollback, on
	Who   string         `json:"who"`
	Since time.Time      `json:"since"`
	Pid   int            `json:"pid,omitempty"`   // of the process that makes it
	Alone bool           `json:"alone,omitempty"` // each host by itself, because a trial's time is over
}

// A TrialEnd is how a trial ended.
type TrialEnd struct {
	Release int       `json:"release"`
	Result  string    `json:"result"` // Confirmed or Reverted
	Why     string    `json:"why,omitempty"`
	When    time.Time `json:"when,omitzero"`
	Settled bool      `json:"settled,omitempty"` // all hosts have it on record

	Back map[string]int `json:"back,omitempty"` // node -> release, if it went back
}

// Results of a trial.
const (
	Confirmed = "confirmed"
	Reverted  = "reverted"
)

// Resting returns what is live of a site that has been taken down, and comes again with the next
// up: of a switch that was interrupted, where it was to end.
func (r *Releases) Resting() map[string]int {
	if r.Switch == nil {
		return r.Active
	}
	live := map[string]int{}
	maps.Copy(live, r.Active)
	maps.Copy(live, r.Switch.End)
	return live
}

// Needed returns the numbers of releases that are live, or to which somebody may return, sorted;
// without 0, which is none.
func (r *Releases) Needed() []int {
	numbers := map[int]bool{}
	all := []map[string]int{r.Active, r.Former}
	if r.Switch != nil {
		all = append(all, r.Switch.To, r.Switch.End)
	}
	if r.Trial != nil {
		all = append(all, r.Trial.Back)
	}
	for _, of := range all {
		for _, number := range of {
			numbers[number] = true
		}
	}
	delete(numbers, 0)
	return slices.Sorted(maps.Keys(numbers))
}

// Confirm notes that a release has proven itself.
func (r *Releases) Confirm(release int) {
	r.Confirmed = append(slices.DeleteFunc(slices.Clone(r.Confirmed), func(n int) bool { return n == release }), release)
}
