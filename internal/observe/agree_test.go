package observe

import (
	"maps"
	"strings"
	"testing"

	"orrery/internal/problem"
	"orrery/internal/site"
)

// of returns releases of node a, which is on sv1, and of node b, which is on sv2.
func of(a, b int) map[string]int { return map[string]int{"a": a, "b": b} }

// theirs are nodes that the site file places on hosts.
var theirs = []site.Node{{Name: "a", Host: "sv1"}, {Name: "b", Host: "sv2"}, {Name: "free"}}

// agreeing returns the result for a record of sv1 and a successor of it on sv2.
func agreeing(older Releases, after func(*Releases), words ...func(*[2]ReleaseReport)) (Agreement, error) {
	newer := older
	newer.Active = maps.Clone(older.Active)
	after(&newer)
	two := [2]ReleaseReport{
		{Host: "sv1", Releases: older, Live: map[string]int{"a": older.Active["a"]}},
		{Host: "sv2", Releases: newer.SuccessorOf(older), Live: map[string]int{"b": older.Active["b"]}},
	}
	for _, change := range words {
		change(&two)
	}
	return Agree(two[:], OwnerOf(theirs, two[:], false))
}

// TestAgreeHostile: whatever a host reports, it cannot move another host's node to a release that
// no control host intended.
func TestAgreeHostile(t *testing.T) {
	live := Releases{Active: of(6, 6), Former: of(5, 5)}.SuccessorOf(Releases{})
	on := live
	on.Trial = &Trial{Release: 6, Back: of(5, 5)}
	on = on.SuccessorOf(live)
	switching := live
	switching.Switch = &Switch{To: of(7, 7), End: of(6, 6)}
	switching = switching.SuccessorOf(live)
	for what, c := range map[string]struct {
		older Releases
		after func(*Releases)
	}{
		"another release is live":     {live, func(r *Releases) { r.Active["a"] = 7 }},
		"the former is live":          {live, func(r *Releases) { r.Active["a"] = 5 }},
		"none is":                     {live, func(r *Releases) { delete(r.Active, "a") }},
		"rollback leads elsewhere":    {live, func(r *Releases) { r.Former = of(4, 5) }},
		"a trial":                     {live, func(r *Releases) { r.Trial = &Trial{Release: 6, Back: of(5, 5)} }},
		"a trial that goes elsewhere": {on, func(r *Releases) { r.Trial = &Trial{Release: 6, Back: of(4, 5)} }},
		"a switch that ends elsewhere": {live, func(r *Releases) {
			r.Switch = &Switch{To: of(7, 7), End: of(7, 7)}
		}},
		"a switch under way that ends so": {switching,
			func(r *Releases) { r.Switch = &Switch{To: of(7, 7), End: of(4, 6)} }},
		"a switch is done, and the node is not": {switching, func(r *Releases) { r.Active, r.Switch = of(7, 7), nil }},
		"a trial is over on all hosts": {on, func(r *Releases) {
			r.Trial, r.Ended = nil, &TrialEnd{Release: 6, Result: Confirmed, Settled: true}
		}},
	} {
		agreed, err := agreeing(c.older, c.after)
		if !problem.Is(err, problem.Surprise) || !strings.Contains(err.Error(), "host sv2 reports of release") ||
			!strings.Contains(err.Error(), "--without sv2") {
			t.Errorf("%s: %+v, %v", what, agreed, err)
		}
		if _, err := agreeing(c.older, c.after, func(w *[2]ReleaseReport) { w[0].Restoring = true }); err != nil {
			t.Errorf("%s, while the host is restored: %v", what, err)
		}
		if _, err := agreeing(c.older, c.after, func(w *[2]ReleaseReport) { w[0].Releases = Releases{} }); err != nil {
			t.Errorf("%s, and the host has nothing on record: %v", what, err)
		}
	}

	// For a node without a host in the site file, the host that has it decides. If none has it,
	// every host may object.
	free := Releases{Active: map[string]int{"free": 6}}.SuccessorOf(Releases{})
	move := func(r *Releases) { r.Active["free"] = 7 }
	holder := func(i int) func(*[2]ReleaseReport) { return func(w *[2]ReleaseReport) { w[i].Live["free"] = 6 } }
	for what, c := range map[string]struct {
		words []func(*[2]ReleaseReport)
		fine  bool
	}{
		"nobody has it":      {nil, false},
		"the other has it":   {[]func(*[2]ReleaseReport){holder(0)}, false},
		"both have it":       {[]func(*[2]ReleaseReport){holder(0), holder(1)}, false},
		"it has it itself":   {[]func(*[2]ReleaseReport){holder(1)}, true},
		"the other has none": {[]func(*[2]ReleaseReport){func(w *[2]ReleaseReport) { w[0].Releases = Releases{} }}, true},
	} {
		if _, err := agreeing(free, move, c.words...); (err == nil) != c.fine {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestAgreeCut: whenever the control host was lost, records that only some hosts have lead to a
// single release.
func TestAgreeCut(t *testing.T) {
	live := Releases{Active: of(6, 6), Former: of(5, 5)}.SuccessorOf(Releases{})
	switching := live
	switching.Switch = &Switch{To: of(7, 7), End: of(6, 6)}
	switching = switching.SuccessorOf(live)
	on := live
	on.Trial = &Trial{Release: 6, Back: of(5, 5)}
	on = on.SuccessorOf(live)
	moved := func(w *[2]ReleaseReport) { w[0].Live["a"], w[1].Live["b"] = 7, 7 }
	down := func(w *[2]ReleaseReport) { w[0].Live, w[1].Live = nil, nil }
	for what, c := range map[string]struct {
		older Releases
		after func(*Releases)
		words []func(*[2]ReleaseReport)
		want  func(Agreement) bool
	}{
		"a switch is intended": {live, func(r *Releases) { r.Switch = &Switch{To: of(7, 7), End: of(6, 6)} }, nil,
			func(a Agreement) bool { return maps.Equal(a.Switch.End, of(6, 6)) }},
		"a rollback is intended": {live, func(r *Releases) { r.Switch = &Switch{To: of(5, 5), End: of(5, 5)} }, nil,
			func(a Agreement) bool { return a.New && maps.Equal(a.Switch.End, of(6, 6)) && len(a.Why) == 1 }},
		"the first switch is intended": {Releases{Confirmed: []int{1}}.SuccessorOf(Releases{}),
			func(r *Releases) { r.Switch = &Switch{To: of(7, 7), End: of(7, 7)} }, []func(*[2]ReleaseReport){down},
			func(a Agreement) bool { return a.New && a.Switch == nil }},
		"of what was brought up without any": {Releases{Confirmed: []int{1}}.SuccessorOf(Releases{}),
			func(r *Releases) { r.Switch = &Switch{To: of(7, 7), End: of(0, 0)} }, nil,
			func(a Agreement) bool { return maps.Equal(a.Switch.End, of(0, 0)) }},
		"a switch is done": {switching, func(r *Releases) { r.Active, r.Former, r.Switch = of(7, 7), of(6, 6), nil },
			[]func(*[2]ReleaseReport){moved},
			func(a Agreement) bool { return !a.New && a.Active["a"] == 7 }},
		"a switch is undone": {switching, func(r *Releases) { r.Switch = nil }, nil,
			func(a Agreement) bool { return !a.New && a.Active["a"] == 6 && a.Switch == nil }},
		"a trial begins": {switching, func(r *Releases) {
			r.Active, r.Switch, r.Trial = of(7, 7), nil,
				&Trial{Release: 7, Back: of(6, 6)}
		}, []func(*[2]ReleaseReport){moved},
			func(a Agreement) bool { return !a.New && a.Trial != nil }},
		"a trial is rolled back": {on, func(r *Releases) { r.Switch = &Switch{To: of(5, 5), End: of(5, 5)} }, nil,
			func(a Agreement) bool { return !a.New && maps.Equal(a.Switch.End, of(5, 5)) }},
		"a trial is confirmed": {on, func(r *Releases) { r.Trial, r.Ended = nil, &TrialEnd{Release: 6, Result: Confirmed} },
			nil,
			func(a Agreement) bool { return a.New && a.Trial != nil && a.Ended == nil && len(a.Why) == 1 }},
		"the site goes down": {on, func(r *Releases) { r.Former, r.Trial = nil, nil }, []func(*[2]ReleaseReport){down},
			func(a Agreement) bool { return !a.New && a.Trial == nil }},
		"a confirmation is known to all": {on, func(r *Releases) {
			r.Ended = &TrialEnd{Release: 6, Result: Confirmed, Settled: true}
		}, nil,
			func(a Agreement) bool { return !a.New }},
		"a host was left out": {live, func(r *Releases) { r.Active["b"], r.Former = 7, of(5, 6) }, nil,
			func(a Agreement) bool { return !a.New && a.Active["b"] == 7 && a.Active["a"] == 6 }},
	} {
		agreed, err := agreeing(c.older, c.after, c.words...)
		if err != nil || !c.want(agreed) {
			t.Errorf("%s: %+v, %+v, %v", what, agreed, agreed.Switch, err)
		}
	}
}

// TestAgreeApart: after hosts ended a trial differently, each node goes to the release in its own
// host's record, whatever the host that went back reports.
func TestAgreeApart(t *testing.T) {
	begun := Releases{Active: of(6, 6), Former: of(5, 5),
		Trial: &Trial{Release: 6, Back: of(5, 5)}}.SuccessorOf(Releases{})
	gone := begun
	gone.Active, gone.Trial, gone.Ended = of(1, 2), nil, &TrialEnd{Release: 6, Result: Reverted, Back: of(1, 2)}
	gone = gone.SuccessorOf(begun)
	for what, stays := range map[string]Releases{
		"on trial": begun,
		"confirmed": func() Releases {
			r := begun
			r.Trial, r.Ended = nil, &TrialEnd{Release: 6, Result: Confirmed}
			return r.SuccessorOf(begun)
		}(),
	} {
		words := []ReleaseReport{{Host: "sv1", Releases: stays}, {Host: "sv2", Releases: gone}}
		agreed, err := Agree(words, OwnerOf(theirs, words, false))
		if err != nil || !agreed.New || agreed.Switch == nil || !maps.Equal(agreed.Switch.End, of(5, 2)) ||
			!maps.Equal(agreed.Switch.To, of(6, 6)) || !maps.Equal(agreed.Active, of(6, 6)) {
			t.Errorf("%s: %+v, %+v, %v", what, agreed, agreed.Switch, err)
		}
	}
}
