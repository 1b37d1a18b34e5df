package handover

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/site/spec"
)

func node(name string, id int) observe.Node {
	return observe.Node{Node: spec.Node{Name: name, ID: id}, State: observe.Running, Proven: "h"}
}

// TestSettle: a node with an interrupted move has one owner afterwards. That is the receiving host
// if it has the node, or if the node was given away and has arrived completely. Otherwise it is the
// old host. If the owner cannot be determined, the node waits.
func TestSettle(t *testing.T) {
	given := observe.OutgoingMove{Node: node("db", 1), To: "sv2", Sum: "s"}
	came := func(sum string, whole bool) observe.IncomingMove {
		return observe.IncomingMove{Name: "db", ID: 1, From: "sv1", Sum: sum, Whole: whole}
	}
	const receive, leave, reclaim, drop = "receive", "leave", "reclaim", "drop"
	for what, c := range map[string]struct {
		a, b   observe.Host // sv1, the old host, and sv2
		out    bool         // sv2 is not in the site
		unfit  bool
		others bool   // other nodes are selected
		want   string // ends of the move, each with the data removed first
		stuck  string
		after  string // hosts that have the node afterwards
	}{
		"no move": {a: observe.Host{Nodes: []observe.Node{node("db", 1)}}, after: "sv1"},
		"all has come": {a: observe.Host{OutgoingMoves: []observe.OutgoingMove{given}},
			b: observe.Host{IncomingMoves: []observe.IncomingMove{came("s", true)}}, want: receive, after: "sv2"},
		"it is there already": {a: observe.Host{OutgoingMoves: []observe.OutgoingMove{given}},
			b: observe.Host{Nodes: []observe.Node{node("db", 1)}}, want: leave, after: "sv2"},
		"it is there by another id": {a: observe.Host{OutgoingMoves: []observe.OutgoingMove{given}},
			b: observe.Host{Nodes: []observe.Node{node("db", 2)}}, want: leave, after: "sv2"},
		"another node is there": {a: observe.Host{OutgoingMoves: []observe.OutgoingMove{given}},
			b: observe.Host{Nodes: []observe.Node{node("web", 2)}}, want: reclaim, after: "sv1"},
		"a part has come": {a: observe.Host{OutgoingMoves: []observe.OutgoingMove{given}},
			b:    observe.Host{IncomingMoves: []observe.IncomingMove{came("s", false)}},
			want: reclaim + " after drop", after: "sv1"},
		"something else has come": {a: observe.Host{OutgoingMoves: []observe.OutgoingMove{given}},
			b:    observe.Host{IncomingMoves: []observe.IncomingMove{came("other", true)}},
			want: reclaim + " after drop", after: "sv1"},
		"nothing has come": {a: observe.Host{OutgoingMoves: []observe.OutgoingMove{given}}, want: reclaim, after: "sv1"},
		"it does not fit": {a: observe.Host{OutgoingMoves: []observe.OutgoingMove{given}},
			b: observe.Host{IncomingMoves: []observe.IncomingMove{came("s", true)}}, unfit: true, want: reclaim + " after drop",
			after: "sv1"},
		"to a host that is out": {a: observe.Host{OutgoingMoves: []observe.OutgoingMove{given}}, out: true, want: reclaim,
			after: "sv1"},
		"to a host that is silent": {a: observe.Host{OutgoingMoves: []observe.OutgoingMove{given}},
			b:     observe.Host{Unknown: true},
			stuck: "host sv1 handed it over to host sv2, whose state is unknown"},
		"of other nodes": {a: observe.Host{OutgoingMoves: []observe.OutgoingMove{given}},
			b: observe.Host{IncomingMoves: []observe.IncomingMove{came("s", true)}}, others: true},
		"it was not given": {a: observe.Host{Nodes: []observe.Node{node("db", 1)}},
			b: observe.Host{IncomingMoves: []observe.IncomingMove{came("s", true)}}, want: drop + " after drop", after: "sv1"},
		"it was not given and is gone": {b: observe.Host{IncomingMoves: []observe.IncomingMove{came("", false)}},
			want: drop + " after drop"},
		"nobody knows that it was": {b: observe.Host{IncomingMoves: []observe.IncomingMove{came("s", true)}},
			stuck: "has no record of handing it over; orrery down db removes the copy"},
		"the first host is silent": {a: observe.Host{Unknown: true},
			b:     observe.Host{IncomingMoves: []observe.IncomingMove{came("s", true)}},
			stuck: "its move from host sv1 was interrupted, and the state of a host is unknown"},
		"it has become the node": {b: observe.Host{Nodes: []observe.Node{node("db", 1)},
			IncomingMoves: []observe.IncomingMove{came("s", true)}}, after: "sv2"},
	} {
		c.a.Name, c.b.Name = "sv1", "sv2"
		hosts := []observe.Host{c.a, c.b}[:2]
		if c.out {
			hosts = hosts[:1]
		}
		e := Resolve(hosts, func(string) bool { return !c.others },
			func(to *observe.Host, g *observe.OutgoingMove) bool { return to.Name == "sv2" && g.ID == 1 && !c.unfit })
		var ends, stuck, after []string
		for _, h := range e.All {
			text := map[Resolution]string{Receive: receive, CleanUp: leave, Reclaim: reclaim, Discard: drop}[h.Resolution]
			if h.Drops {
				text += " after drop"
			}
			if h.Node != "db" || h.ID != 1 || h.From != "sv1" || h.To != "sv2" && !c.out ||
				(h.Given == nil) != (h.Resolution == Discard) {
				t.Errorf("%s: %+v", what, h)
			}
			ends = append(ends, text)
		}
		for _, s := range e.Blocked {
			stuck = append(stuck, s.Node+": "+s.Why)
		}
		for _, h := range e.After {
			if i := slices.IndexFunc(h.Nodes, func(n observe.Node) bool { return n.Name == "db" }); i >= 0 {
				after = append(after, h.Name)
				if n := h.Nodes[i]; c.want == receive && (n.State != observe.Stopped || n.Proven != "") {
					t.Errorf("%s: it is %s, and proven by %q", what, n.State, n.Proven)
				}
			}
		}
		if got := strings.Join(ends, ", "); got != c.want {
			t.Errorf("%s: it ends with %q, not %q", what, got, c.want)
		}
		if got := strings.Join(stuck, ", "); (got == "") != (c.stuck == "") || !strings.Contains(got, c.stuck) {
			t.Errorf("%s: stuck is %q, not %q", what, got, c.stuck)
		}
		if got := strings.Join(after, ", "); got != c.after {
			t.Errorf("%s: then it is on %q, not %q", what, got, c.after)
		}
	}
}

// TestSettleAll: interrupted moves of unselected nodes stay as they are.
func TestSettleAll(t *testing.T) {
	hosts := []observe.Host{
		{Name: "sv1", OutgoingMoves: []observe.OutgoingMove{{Node: node("db", 1), To: "sv2", Sum: "s"},
			{Node: node("web", 2), To: "sv2", Sum: "w"}}},
		{Name: "sv2", IncomingMoves: []observe.IncomingMove{{Name: "db", ID: 1, From: "sv1", Sum: "s", Whole: true},
			{Name: "web", ID: 2, From: "sv1", Sum: "w", Whole: true}}},
	}
	e := Resolve(hosts, func(name string) bool { return name == "db" },
		func(*observe.Host, *observe.OutgoingMove) bool { return true })
	if len(e.All) != 1 || e.All[0].Node != "db" || len(e.Blocked) > 0 {
		t.Errorf("%+v", e)
	}
	if g, a := e.After[0].OutgoingMoves, e.After[1].IncomingMoves; len(g) != 1 || g[0].Name != "web" || len(a) != 1 ||
		a[0].Name != "web" {
		t.Errorf("left are %s", fmt.Sprint(g, a))
	}
	if len(hosts[0].OutgoingMoves) != 2 || len(hosts[1].Nodes) != 0 {
		t.Error("what was seen has changed")
	}
}
