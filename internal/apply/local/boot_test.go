package local

import (
	"context"
	"slices"
	"testing"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/plan"
	"orrery/internal/site"
)

// TestCheckAwaitsBoot: a node that has been started is asked for its health once it has booted, and
// one that ran is asked at once.
func TestCheckAwaitsBoot(t *testing.T) {
	n := newServed(t)
	var asked []string
	n.engine.Command = func(_ context.Context, _ engine.Ref, c host.Command) error {
		asked = append(asked, c.Args[len(c.Args)-1])
		return nil
	}
	do := func(kind plan.Kind) {
		t.Helper()
		n.must(n.Do(t.Context(), &plan.Step{Kind: kind, Node: n.node, Was: n.node, Subject: "one"}, func(string) {}))
	}
	do(plan.CheckNode)
	n.must(n.engine.Stop(t.Context(), engine.RefOf(n.node)))
	do(plan.StartNode)
	do(plan.CheckNode)
	do(plan.CheckNode)
	if want := []string{"ask", "--wait", "ask", "ask"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, not %q", asked, want)
	}
}

// TestCheckWithoutGuest: of a node of whose system nothing is known, it is not asked whether that has booted.
func TestCheckWithoutGuest(t *testing.T) {
	n := newServed(t)
	n.node.Disk.Guest = site.NoGuest
	n.engine.Command = func(_ context.Context, _ engine.Ref, c host.Command) error {
		if slices.Contains(c.Args, "--wait") {
			t.Errorf("it is asked %q", c.Args)
		}
		return nil
	}
	n.must(n.engine.Stop(t.Context(), engine.RefOf(n.node)))
	for _, kind := range []plan.Kind{plan.StartNode, plan.CheckNode} {
		n.must(n.Do(t.Context(), &plan.Step{Kind: kind, Node: n.node, Was: n.node, Subject: "one"}, func(string) {}))
	}
}
