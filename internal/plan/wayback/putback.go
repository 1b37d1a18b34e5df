package wayback

import (
	"slices"

	"orrery/internal/plan"
	"orrery/internal/site/spec"
)

// Restore plans, after a run in batches failed, how nodes of the failed batch are restored. These
// are the nodes that were disturbed and did not finish their steps. What they were is kept until
// the whole run has succeeded. left names the nodes that cannot be restored, because nothing of
// them is kept or their networks have changed.
func Restore(p *plan.Plan, done, failed []*plan.Step) (back *plan.Plan, left []string) {
	ended := map[int]bool{}
	for _, s := range done {
		ended[s.N] = true
	}
	tried := slices.Concat(done, failed)
	away := map[string]bool{}
	for _, s := range tried {
		if s.Batch > 0 && len(s.Disturbs) > 0 {
			away[s.Subject] = true
		}
	}
	whole, kept := map[string]bool{}, map[string]bool{}
	for _, s := range p.Steps {
		if s.Batch == 0 || !away[s.Subject] {
			continue
		}
		if _, known := whole[s.Subject]; !known {
			whole[s.Subject], kept[s.Subject] = true, true
		}
		whole[s.Subject] = whole[s.Subject] && ended[s.N]
		kept[s.Subject] = kept[s.Subject] && isRestorable(s)
	}
	steps := slices.DeleteFunc(tried, func(s *plan.Step) bool {
		return s.Batch == 0 || whole[s.Subject] || !kept[s.Subject]
	})
	for name := range away {
		if !whole[name] && !kept[name] {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	return Undo(p, steps), left
}

// isRestorable reports whether the node's state before a step can be restored while everything else stays
// as the plan has made it.
func isRestorable(s *plan.Step) bool {
	switch s.Kind {
	case plan.StopNode, plan.KillNode, plan.ReplaceNode, plan.ReshapeNode, plan.LimitNode, plan.StartNode,
		plan.ConfigureNode, plan.CheckNode:
		return s.Old != nil && (s.Node == nil ||
			slices.Equal(spec.WithoutTraffic(s.Old.NICs), spec.WithoutTraffic(s.Node.NICs)))
	}
	return false
}
