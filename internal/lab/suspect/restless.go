package suspect

import (
	"fmt"

	"orrery/internal/lab/probe"
)

// restShare is the share of one processor that idle nodes may use.
const restShare = 0.05

// Restless returns what uses the host while the lab is idle, or "" if nothing does. The lab itself
// and its nodes do not count.
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

// AtRest reports whether the nodes are idle.
func AtRest(seconds []probe.Second) bool {
	t := sum(seconds)
	return t.cgroups.Total() <= restShare*t.took
}
