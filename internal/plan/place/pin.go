package place

import (
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// pinned wants that a node is pinned to processors that its host has: what check cannot know.
func pinned(n *site.Node, h *observe.Host) error {
	if h.Online == "" {
		return nil
	}
	if lacks := site.Beyond(n.Limits.Pin, h.Online); lacks != "" {
		return problem.New(problem.Mistake, "node %s is pinned to processors %s, but host %s has %s only: it lacks %s",
			n.Name, n.Limits.Pin, h.Name, h.Online, lacks).
			At("site.toml").Try("name those that it has, or leave pin out and bound the node by cpus")
	}
	return nil
}
