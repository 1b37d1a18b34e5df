package here

import (
	"context"

	"orrery/internal/apply"
	"orrery/internal/engine"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// Near is what operations take of a host beyond apply.Host. It is made of paths, descriptors and functions of this process, which do not travel, so
// only the machine on which the program runs gives it.
type Near interface {
	Engined
	Filler
}

// An Engined host gives the engines of its nodes by name: a snapshot, a backup and an adoption read, lay down and mark what is in the private layers of
// nodes, and the lab puts its tools there.
type Engined interface {
	ByName() map[string]engine.Engine
}

// A Filler tells this process of a node that has been made, before it is started: a restore puts there what a backup has of its private layer.
type Filler interface {
	Fill(made func(ctx context.Context, e engine.Engine, n *spec.Node) error)
}

// Of gives what only the machine has on which the program runs.
func Of(h *apply.Steered) (Near, error) {
	if near, is := h.Host.(Near); is {
		return near, nil
	}
	return nil, problem.New(problem.Unable, "host %s is another machine: the contents of its nodes and volumes are not available here", h.Name).
		Try("run the same command on that host")
}
