package suspect

import (
	"fmt"

	"orrery/internal/lab/probe"
)

// restShare is how much of one processor nodes take that have come to rest.
const restShare = 0.05

// Restless says who uses the host while the lab does nothing; "": nobody. What its nodes and it
// itself take is not counted.
func Restless(seconds []probe.Second) string {
	t := sum(seconds)
	total := t.cpu.Total()
	if total <= 0 {
		return ""
	}
	if label, bad := stolen(t, Context{}); bad {
		return label.Why
	}
	ours := t.self.Total() + max(t.children.Total(), t.cgroups.Total())
	if rest := t.cpu.User + t.cpu.Nice + t.cpu.System - ours; rest > idleShare*total {
		return fmt.Sprintf("others take %.2f of the %.0f processors", rest/t.took, total/t.took)
	}
	return ""
}

// AtRest reports whether the nodes do nothing.
func AtRest(seconds []probe.Second) bool {
	t := sum(seconds)
	return t.cgroups.Total() <= restShare*t.took
}
