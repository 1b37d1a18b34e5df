package observe

import (
	"slices"
	"strconv"
	"testing"

	"orrery/internal/problem"
)

// spoken returns the words of hosts sv1, sv2, … with some records.
func spoken(all []Releases) (words []ReleaseReport) {
	for i, r := range all {
		words = append(words, ReleaseReport{Host: "sv" + strconv.Itoa(i+1), Releases: r})
	}
	return words
}

// elsewhere is the Owner for nodes that may be on an unknown host.
func elsewhere(string) int { return UnknownOwner }

// TestNewest: of records that succeed each other, the newest wins. Two unrelated records are an
// error.
func TestNewest(t *testing.T) {
	nothing := Releases{}
	first := Releases{Active: map[string]int{"web": 700}} // of a host that has not named it
	second := Releases{Active: map[string]int{"web": 701}}.SuccessorOf(first)
	third := Releases{Active: map[string]int{"web": 700}}.SuccessorOf(second)
	fork := Releases{Active: map[string]int{"web": 702}}.SuccessorOf(first)
	if first.State() == third.State() ||
		third.State() != (Releases{Active: map[string]int{"web": 700}, Staged: []int{7}}).SuccessorOf(second).State() {
		t.Errorf("the states are %s and %s", first.State(), third.State())
	}
	for what, c := range map[string]struct {
		has    []Releases
		newest int
		behind []int
	}{
		"nothing":        {[]Releases{nothing, nothing, nothing}, 0, nil},
		"new hosts":      {[]Releases{nothing, first, nothing}, 1, []int{0, 2}},
		"one behind":     {[]Releases{first, second, second}, 1, []int{0}},
		"far behind":     {[]Releases{third, first, nothing}, 0, []int{1, 2}},
		"each elsewhere": {[]Releases{second, first, third}, 2, []int{0, 1}},
		"alone":          {[]Releases{fork}, 0, nil},
	} {
		agreed, err := Agree(spoken(c.has), elsewhere)
		if err != nil || agreed.State() != c.has[c.newest].State() || agreed.New || !slices.Equal(agreed.Behind, c.behind) {
			t.Errorf("%s: agreed is %+v: %v", what, agreed, err)
		}
	}
	for what, releases := range map[string][]Releases{
		"apart":          {second, fork},
		"after one":      {third, first, fork},
		"two without id": {first, {Active: map[string]int{"web": 1}}},
		"one name":       {second, {Active: map[string]int{"web": 1}, ID: second.ID, Past: second.Past}},
	} {
		if _, err := Agree(spoken(releases), elsewhere); !problem.Is(err, problem.Surprise) {
			t.Errorf("%s: %v", what, err)
		}
	}
	long := first
	for range maxPast + 1 {
		long = first.SuccessorOf(long)
	}
	if len(long.Past) != maxPast {
		t.Errorf("%d former states are known", len(long.Past))
	}
	if _, err := Agree(spoken([]Releases{long, first}), elsewhere); err == nil {
		t.Error("a host that was away for longer than is known is taken for one that is behind")
	}
}

// TestTrialIsNoState: hosts that began a trial at different times have the same state.
func TestTrialIsNoState(t *testing.T) {
	at := func(boot string) Releases {
		trial := &Trial{Release: 701}
		trial.SetDeadline(Timestamp{Boot: boot}, 7)
		return Releases{Trial: trial}.SuccessorOf(Releases{})
	}
	if one, two := at("a"), at("b"); one.State() != two.State() || one.Trial.Boot != "a" {
		t.Errorf("the states are %s and %s; a trial began with boot %s", one.State(), two.State(), one.Trial.Boot)
	}
}

// TestApart: hosts that ended a trial differently are distinguished from hosts that are only
// behind.
func TestApart(t *testing.T) {
	trial := &Trial{Release: 700, Back: map[string]int{"web": 0}}
	begun := Releases{Active: map[string]int{"web": 700}, Former: map[string]int{"web": 0},
		Trial: trial}.SuccessorOf(Releases{Active: map[string]int{"web": 0}})
	then := func(change func(*Releases)) Releases {
		r := begun
		change(&r)
		return r.SuccessorOf(begun)
	}
	gone := then(func(r *Releases) {
		r.Active, r.Trial, r.Ended = map[string]int{"web": 0}, nil,
			&TrialEnd{Release: 700, Result: Reverted, Back: trial.Back}
	})
	going := then(func(r *Releases) { r.Switch = &Switch{To: trial.Back, End: trial.Back, Alone: true} })
	followed := Releases{Active: gone.Active, Ended: gone.Ended}.SuccessorOf(going)
	confirmed := then(func(r *Releases) { r.Trial, r.Ended = nil, &TrialEnd{Release: 700, Result: Confirmed} })
	settled := Releases{Active: confirmed.Active, Former: confirmed.Former,
		Ended: &TrialEnd{Release: 700, Result: Confirmed, Settled: true}}.SuccessorOf(confirmed)
	later := Releases{Active: map[string]int{"web": 701}}.SuccessorOf(gone)
	for what, c := range map[string]struct {
		a, b  Releases
		apart bool
	}{
		"both on trial":       {begun, begun, false},
		"both gone":           {gone, gone, false},
		"both confirmed":      {confirmed, confirmed, false},
		"one does not know":   {begun, confirmed, false},
		"one has gone":        {gone, begun, true},
		"one is going":        {begun, going, true},
		"one has, one is":     {going, followed, true},
		"one gone, one stays": {confirmed, gone, true},
		"something since":     {later, begun, false},
		"nothing there":       {Releases{}, gone, false},
		"all were told":       {settled, gone, false},
	} {
		for _, all := range [][]Releases{{c.a, c.b}, {c.b, c.a}} {
			agreed, _, ok := diverged(spoken(all), elsewhere)
			if ok != c.apart || ok && (agreed.Switch == nil || agreed.Switch.End["web"] != 0 ||
				agreed.Switch.To["web"] != 700 || agreed.Trial != nil) {
				t.Errorf("%s: %v, %+v", what, ok, agreed)
			}
		}
	}
}
