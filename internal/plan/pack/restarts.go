package pack

import "orrery/internal/plan"

type instance struct {
	host string
	id   int
}

// MarkRestarts marks each step that stops a node which the plan starts again on the same host. The
// host then checks before the stop that it can start the node. Plans that undo another plan are not
// marked, since they continue in any case.
func MarkRestarts(p *plan.Plan) {
	starts := map[instance]bool{}
	for _, s := range p.Steps {
		if s.Kind == plan.StartNode {
			starts[instance{s.Host, s.Node.ID}] = true
		}
	}
	for _, s := range p.Steps {
		if s.Kind == plan.StopNode || s.Kind == plan.KillNode {
			s.Restarts = starts[instance{s.Host, s.Old.ID}]
		}
	}
}
