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

// TestCheckAwaitsBoot: a node that was just started is checked after it has booted, and a node that
// was running is checked at once.
func TestCheckAwaitsBoot(t *testing.T) {
	n := newServed(t)
	var asked []string
	n.engine.Command = func(_ context.Context, _ engine.Ref, c host.Command) error {
		asked = append(asked, c.Args[len(c.Args)-1])
		return nil
	}
	do := func(kind plan.Kind) {
		t.Helper()
		n.must(n.Do(t.Context(), &plan.Step{Kind: kind, Node: n.node, Old: n.node, Subject: "one"}, func(string) {}))
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

// TestCheckWithoutGuest: a node without a known guest system is not asked whether it has booted.
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
		n.must(n.Do(t.Context(), &plan.Step{Kind: kind, Node: n.node, Old: n.node, Subject: "one"}, func(string) {}))
	}
}
