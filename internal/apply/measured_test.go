package apply

import (
	"testing"
	"time"

	"orrery/internal/plan"
)

// TestMeasured: a switch over two hosts reports the time between the moves of their links,
// whichever was first. It also reports how long a node was disturbed: from the first step that
// disturbs a node to the last step of a node.
func TestMeasured(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(1e9+int64(seconds), 0) }
	p := &plan.Plan{Steps: []*plan.Step{
		{N: 0, Kind: plan.StopNode, Host: "sv1", Disturbs: []string{"web"}},
		{N: 1, Kind: plan.MoveLinks, Host: "sv1"},
		{N: 2, Kind: plan.MoveLinks, Host: "sv2"},
		{N: 3, Kind: plan.CommitSwitch, Host: "sv1"},
		{N: 4, Kind: plan.MoveLinks, Host: "sv3"}, // it was not done
	}}
	for what, c := range map[string]struct {
		first, second int // when the hosts had moved their links
		outage        time.Duration
	}{
		"the first is first":    {first: 12, second: 15, outage: 5 * time.Second},
		"the second is first":   {first: 15, second: 12, outage: 5 * time.Second},
		"both at the same time": {first: 15, second: 15, outage: 5 * time.Second},
	} {
		r := &Result{Spans: map[int]Span{
			0: {Began: at(10), Ended: at(11)}, 1: {Began: at(11), Ended: at(c.first)},
			2: {Began: at(11), Ended: at(c.second)}, 3: {Began: at(16), Ended: at(60)},
		}}
		skew, outage := r.Measured(p)
		want := time.Duration(max(c.first, c.second)-min(c.first, c.second)) * time.Second
		if skew != want || outage != c.outage {
			t.Errorf("%s: the skew is %s instead of %s, the outage %s instead of %s", what, skew, want, outage, c.outage)
		}
	}
	quiet := &plan.Plan{Steps: []*plan.Step{{N: 0, Kind: plan.MoveLinks, Host: "sv1"},
		{N: 1, Kind: plan.MoveLinks, Host: "sv2"}}}
	r := &Result{Spans: map[int]Span{0: {Ended: at(1)}, 1: {Ended: at(3)}}}
	if skew, outage := r.Measured(quiet); skew != 0 || outage != 0 {
		t.Errorf("where nothing was disturbed: %s, %s", skew, outage)
	}
}
