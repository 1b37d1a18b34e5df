package plan_test

import (
	"slices"
	"testing"
	"time"

	"orrery/internal/plan"
	"orrery/internal/site/spec"
)

// TestEnding: nodes end in the way that the goal specifies, for whatever reason the plan ends them,
// and the step contains it.
func TestEnding(t *testing.T) {
	s := observatory()
	f := newFleet("sv1")
	f.reach(t, s)
	for ending, kind := range map[plan.StopMode]plan.Kind{
		{}:                     plan.StopNode,
		{Timeout: time.Second}: plan.StopNode,
		{Hard: true}:           plan.KillNode,
	} {
		goal := plan.Goal{Nodes: map[string]bool{"portal": true, "db": true}, Ending: ending}
		hosts := f.observe()
		for i := range hosts[0].Nodes { // so that each of them has data to save when the site is destroyed
			hosts[0].Nodes[i].Mounts = []spec.Mount{{Volume: "rows", Path: "/srv"}}
		}
		restart, err := plan.Restart(s, hosts, goal)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []*plan.Plan{plan.Stop(s, hosts, goal), plan.Down(s, hosts, goal), restart} {
			ends := slices.DeleteFunc(slices.Clone(p.Steps), func(step *plan.Step) bool {
				return step.Kind != plan.StopNode && step.Kind != plan.KillNode
			})
			if len(ends) != 2 {
				t.Errorf("%+v: %q", ending, lines(p))
			}
			for _, step := range ends {
				if decoded := travelled(t, step); decoded.Kind != kind || decoded.Timeout != ending.Timeout {
					t.Errorf("%+v: %s within %v", ending, decoded, decoded.Timeout)
				}
			}
		}
	}
}
