package plan_test

import (
	"testing"

	"pgregory.net/rapid"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/wayback"
	"orrery/internal/site/spec"
)

// lasting is what undo must restore: everything except layers and settings, which stay, and proofs
// of health, which must be repeated. Destroyed nodes, and the names file of a host without nodes,
// are not restored.
func lasting(all []observe.Host, lost map[string]bool) string {
	type node struct {
		Spec       spec.Node
		State      observe.State
		Configured bool
	}
	var words []any
	for _, h := range all {
		words = append(words, h.Name)
		for _, n := range h.Networks {
			words = append(words, n.Network) // the ends of a veth pair depend on the nodes
		}
		if !lost[h.Name] {
			words = append(words, h.Names)
		}
		for _, n := range h.Nodes {
			if !lost[h.Name+"/"+n.Name] {
				n.Config.Health = ""
				words = append(words, node{n.Node, n.State, n.Configured})
			}
		}
	}
	return spec.Digest(words)
}

func TestUndoRestores(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, g := begun(t)
		s := g.edited(t).site()
		before := f.observe()
		p := f.up(t, s, plan.Goal{})
		if rapid.Bool().Draw(t, "fails") && !stumble(t, f, p) {
			return
		}
		result := f.run(p, 1+small(t, 3, "parallel"))
		f.faults.Revive()
		tried := result.Done
		for _, failed := range result.Failed {
			tried = append(tried, failed.Step)
		}
		lost := map[string]bool{}
		for _, step := range tried {
			if step.Kind == plan.DestroyNode || step.Kind == plan.ForgetNames {
				if step.Undo != "" {
					t.Fatalf("%s claims that it can be undone: %s", step, step.Undo)
				}
				lost[step.Host+"/"+step.Subject] = true
				lost[step.Host] = lost[step.Host] || step.Kind == plan.ForgetNames
			}
		}
		back := wayback.Undo(p, tried)
		if result := f.run(back, 4); !result.OK() {
			for _, failed := range result.Failed {
				t.Errorf("%s: %v", failed.Step, failed.Err)
			}
			t.Fatalf("undo failed after\n%sby\n%s", text(p), text(back))
		}
		if lasting(before, lost) != lasting(f.observe(), lost) {
			t.Fatalf("before\n%+v\nafter\n%+v\nby\n%s\nand back\n%s", before, f.observe(), text(p), text(back))
		}
	})
}
