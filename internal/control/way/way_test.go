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
		"node db stands still: its host has no room for what it writes to its disks (make room there, then orrery start db)":              n(observe.Node{Starved: true}),
		"node db stands still: its kernel has panicked (orrery console --log db shows what it printed; orrery restart db starts it anew)": n(observe.Node{Panic: "Kernel panic"}),
		"node db stands still (orrery start db)": n(observe.Node{}),
	} {
		if got := frozenError(n).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
