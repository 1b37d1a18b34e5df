package pack

import "orrery/internal/plan"

type instance struct {
	host string
	id   int
}

// NoteRestarts notes at each stop of a node whether the plan starts it again on the same host: that
// host makes sure before the stop that it can. A plan that undoes another has no such notes: it
// goes on, whatever comes of it.
func NoteRestarts(p *plan.Plan) {
	starts := map[instance]bool{}
	for _, s := range p.Steps {
		if s.Kind == plan.StartNode {
			starts[instance{s.Host, s.Node.ID}] = true
		}
	}
	for _, s := range p.Steps {
		if s.Kind == plan.StopNode || s.Kind == plan.KillNode {
			s.Restarts = starts[instance{s.Host, s.Was.ID}]
		}
	}
}
