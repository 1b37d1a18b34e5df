package rehearsal

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

// TestOutages checks that an outage is a period that all nodes of other hosts have seen that pinged at
// that time. Neither a prober that has ended nor one on the node's own host counts.
func TestOutages(t *testing.T) {
	began := time.Unix(1000, 0)
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	web := Target{"web", netip.MustParseAddr("10.8.67.11")}
	view := func(from, host string, first, last int, silences ...int) HostView {
		v := View{From: from, Of: web, First: at(first), Last: at(last)}
		for i := 0; i < len(silences); i += 2 {
			v.Outages = append(v.Outages, Outage{at(silences[i]), at(silences[i+1])})
		}
		nodes := []string{from}
		if host == "sv2" {
			nodes = append(nodes, web.Node)
		}
		return HostView{host, nodes, []View{v}}
	}
	for name, c := range map[string]struct {
		seen []HostView
		want OutageSummary
	}{
		"nobody asked":                         {nil, OutageSummary{}},
		"one did, and had an answer each time": {[]HostView{view("a", "sv1", 0, 5000)}, OutageSummary{Asked: 1}},
		"two gaps": {[]HostView{view("a", "sv1", 0, 5000, 100, 400, 1000, 1200)},
			OutageSummary{Gaps: 2, Longest: 0.3, Whole: 0.5, Asked: 1}},
		"another had answers meanwhile": {[]HostView{view("a", "sv1", 0, 5000, 100, 400),
			view("b", "sv3", 0, 5000, 300, 600)}, OutageSummary{Gaps: 1, Longest: 0.1, Whole: 0.1, Asked: 2}},
		"another was gone by then": {[]HostView{view("a", "sv1", 0, 5000, 1000, 3000), view("b", "sv3", 0, 1500)},
			OutageSummary{Gaps: 1, Longest: 1.5, Whole: 1.5, Asked: 2}},
		"silent at the end": {[]HostView{view("a", "sv1", 0, 5000, 4000, 5000)},
			OutageSummary{Gaps: 1, Longest: 1, Whole: 1, Silent: true, Asked: 1}},
		"from its own host": {[]HostView{view("a", "sv2", 0, 5000, 100, 400)}, OutageSummary{}},
	} {
		c.want.Node, c.want.Address = web.Node, web.Address
		if got := SummarizeOutages([]Target{web}, c.seen, at(5000)); !slices.Equal(got, []OutageSummary{c.want}) {
			t.Errorf("%s: %+v, not %+v", name, got, c.want)
		}
	}
}
