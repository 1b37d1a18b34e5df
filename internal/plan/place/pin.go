package place

import (
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// checkPinning returns an error if a node is pinned to processors that its host lacks. Package check
// cannot know this.
func checkPinning(n *site.Node, h *observe.Host) error {
	if h.Online == "" {
		return nil
	}
	if lacks := site.MissingProcessors(n.Limits.Pin, h.Online); lacks != "" {
		return problem.New(problem.Mistake, "node %s is pinned to processors %s, but host %s has only %s: it lacks %s",
			n.Name, n.Limits.Pin, h.Name, h.Online, lacks).
			At("site.toml").Try("use processors that it has, or remove pin and limit the node by cpus")
	}
	return nil
}
