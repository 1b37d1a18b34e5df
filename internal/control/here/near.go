package here

import (
	"orrery/internal/apply"
	"orrery/internal/engine"
	"orrery/internal/problem"
)

// Near is what operations take of a host beyond apply.Host: the engines of its nodes by name. They are made of paths, descriptors and functions
// of this process, which do not travel, so only the machine on which the program runs gives them. The lab puts its tools where the private layers of nodes are.
type Near interface {
	ByName() map[string]engine.Engine
}

// Of gives what only the machine has on which the program runs.
func Of(h *apply.Steered) (Near, error) {
	if near, is := h.Host.(Near); is {
		return near, nil
	}
	return nil, problem.New(problem.Unable, "host %s is another machine: the contents of its nodes and volumes are not available here", h.Name).
		Try("run the same command on that host")
}
