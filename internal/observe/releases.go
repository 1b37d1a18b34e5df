package observe

import (
	"maps"
	"slices"
	"time"
)

// Releases is a host's record of the releases of a site: which release is live, which one was live
// before, and which change is in progress.
type Releases struct {
	// Active maps nodes to the live release. Nodes without a release are missing.
	Active map[string]int `json:"active,omitempty"`
	// Former maps nodes to the release that was live before. Rollback returns to it.
	Former    map[string]int `json:"former,omitempty"`
	Confirmed []int          `json:"confirmed,omitempty"` // releases that passed their trial, the latest last
	Switch    *Switch        `json:"switch,omitempty"`    // in progress or interrupted
	Trial     *Trial         `json:"trial,omitempty"`     // of the live release, until it is confirmed
	Ended     *TrialEnd      `json:"ended,omitempty"`     // how the last trial ended
	Staged    []int          `json:"staged,omitempty"`    // all releases stored here, sorted

	ID   string   `json:"id,omitempty"`   // name of the record's content; see After
	Past []string `json:"past,omitempty"` // names of previous records, the latest last
}

// A Switch is a change of the live release. It is recorded before it begins, so that the next
// command knows where it must end if its process is killed.
type Switch struct {
	To map[string]int `json:"to"`
	// End has the release of each node after an interruption: the old one or, for a rollback, the
	// new one.
	End   map[string]int `json:"end"`
	Who   string         `json:"who"`
	Since time.Time      `json:"since"`
	Pid   int            `json:"pid,omitempty"` // process that performs it
	// Alone means that each host goes back on its own, because a trial's time is over.
	Alone bool `json:"alone,omitempty"`
}

// A TrialEnd describes how a trial ended.
type TrialEnd struct {
	Release int       `json:"release"`
	Result  string    `json:"result"` // Confirmed or Reverted
	Why     string    `json:"why,omitempty"`
	When    time.Time `json:"when,omitzero"`
	Settled bool      `json:"settled,omitempty"` // all hosts have recorded it

	Back map[string]int `json:"back,omitempty"` // node -> release, if the nodes went back
}

// Results of a trial.
const (
	Confirmed = "confirmed"
	Reverted  = "reverted"
)

// RestartTargets returns the live releases of a site that was taken down and that the next up starts
// again. For an interrupted switch they are the releases where it must end.
func (r *Releases) RestartTargets() map[string]int {
	if r.Switch == nil {
		return r.Active
	}
	live := map[string]int{}
	maps.Copy(live, r.Active)
	maps.Copy(live, r.Switch.End)
	return live
}

// Needed returns the sorted numbers of the releases that are live or to which nodes may return. It
// leaves out 0, which means no release.
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

// Confirm records that a release passed its trial.
func (r *Releases) Confirm(release int) {
	r.Confirmed = append(slices.DeleteFunc(slices.Clone(r.Confirmed), func(n int) bool { return n == release }), release)
}
