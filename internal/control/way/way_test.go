package way

import (
	"testing"

	"orrery/internal/observe"
	"orrery/internal/site/spec"
)

// TestStandsStill: the error for a frozen node has the cause and the cure.
func TestStandsStill(t *testing.T) {
	n := func(n observe.Node) *observe.Node {
		n.Node, n.State = spec.Node{Name: "db"}, observe.Frozen
		return &n
	}
	for want, n := range map[string]*observe.Node{
		"node db is frozen: its host has no space left for its disks (free space there, then run orrery start db)":             n(observe.Node{Starved: true}),
		"node db is frozen: its kernel has panicked (orrery console --log db shows its output; orrery restart db restarts it)": n(observe.Node{Panic: "Kernel panic"}),
		"node db is frozen (orrery start db)": n(observe.Node{}),
	} {
		if got := frozenError(n).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
