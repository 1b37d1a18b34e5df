package suspect

import (
	"fmt"

	"orrery/internal/lab/probe"
)

// maxIdleNodeShare is the share of one processor that idle nodes may use.
const maxIdleNodeShare = 0.05

// BusyReason returns what uses the host while the lab is idle, or "" if nothing does. The lab itself
// and its nodes do not count.
func BusyReason(seconds []probe.Second) string {
	t := sumSeconds(seconds)
	total := t.cpu.Total()
	if total <= 0 {
		return ""
	}
	if label, bad := stolen(t, Context{}); bad {
		return label.Why
	}
	ours := t.self.Total() + max(t.children.Total(), t.cgroups.Total())
	if rest := t.cpu.User + t.cpu.Nice + t.cpu.System - ours; rest > maxIdleShare*total {
		return fmt.Sprintf("other processes use %.2f of the %.0f processors", rest/t.took, total/t.took)
	}
	return ""
}

// NodesIdle reports whether the nodes are idle.
func NodesIdle(seconds []probe.Second) bool {
	t := sumSeconds(seconds)
	return t.cgroups.Total() <= maxIdleNodeShare*t.took
}
