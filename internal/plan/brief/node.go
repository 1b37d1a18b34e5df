package brief

import (
	"slices"
	"strings"

	"orrery/internal/plan"
	"orrery/internal/plan/stand"
)

const nodeNoun = "node"

// nodeActions are what a plan can do to a node as a whole, the gravest first. A node's line has the
// first one whose step it has.
var nodeActions = []struct {
	kinds []plan.Kind
	verb  string
}{
	{[]plan.Kind{plan.DestroyNode}, "destroy"},
	{[]plan.Kind{plan.ReplaceNode}, "recreate"},
	{[]plan.Kind{plan.ReceiveNode, plan.HandOverNode, plan.ReclaimNode, plan.CleanUpNode}, "move"},
	{[]plan.Kind{plan.CreateNode}, "create"},
	{[]plan.Kind{plan.DiscardNode}, "discard"},
	{[]plan.Kind{plan.ReshapeNode, plan.LimitNode}, "update"},
	{[]plan.Kind{plan.MoveLinks}, "rewire"},
	{[]plan.Kind{plan.RepairNode}, "repair"},
	{[]plan.Kind{plan.RenewNode}, "renew"},
	{[]plan.Kind{plan.StartNode}, "start"},
	{[]plan.Kind{plan.ConfigureNode}, "configure"},
	{[]plan.Kind{plan.StopNode, plan.KillNode}, "stop"},
	{[]plan.Kind{plan.CheckNode}, "check"},
}

// followUps are kinds of steps whose reason is that another step of the node comes first.
var followUps = []plan.Kind{plan.StartNode, plan.StopNode, plan.KillNode, plan.CheckNode}

func (s *subject) nodeLine() *Line {
	l := &Line{Verb: "change", Noun: nodeNoun, Names: []string{s.name}, rank: len(nodeActions)}
	for rank, a := range nodeActions {
		i := slices.IndexFunc(a.kinds, func(k plan.Kind) bool { return s.has(k) })
		if i < 0 {
			continue
		}
		l.Verb, l.rank, l.Reason = a.verb, rank, s.reason(a.kinds[i])
		break
	}
	switch {
	case s.has(plan.DestroyNode, plan.ReplaceNode):
		l.Lost = stand.Loss
		if s.has(plan.DestroyNode) && s.has(plan.CreateNode) {
			l.Verb, l.rank = "recreate", 1
		}
	case l.Verb == "discard" && len(s.steps[plan.DiscardNode].Disturbs) > 0:
		l.Lost = stand.Loss
	case s.has(plan.StopNode, plan.KillNode) && s.has(plan.StartNode):
		if l.Effect = "restarted"; l.Verb == "start" {
			l.Verb, l.Effect = "restart", "interrupted"
		}
	case s.disturbs(plan.ConfigureNode):
		l.Effect = "services restart"
	case s.disturbs(plan.RepairNode, plan.StopNode, plan.KillNode):
		l.Effect = "interrupted"
	}
	return l
}

// reason returns why a node is changed. A node that is created or destroyed has one reason. For other
// nodes, it joins the reasons of all steps that do not follow from another one.
func (s *subject) reason(main plan.Kind) string {
	switch main {
	case plan.ReplaceNode:
		return stand.LayerChange(s.steps[main].Old, s.steps[main].Node)
	case plan.DestroyNode, plan.CreateNode, plan.ReceiveNode, plan.HandOverNode, plan.ReclaimNode, plan.CleanUpNode,
		plan.DiscardNode:
		return s.steps[main].Reason
	}
	var all []string
	for _, a := range nodeActions {
		for _, kind := range a.kinds {
			step := s.steps[kind]
			if step == nil || kind != main && slices.Contains(followUps, kind) || slices.Contains(all, step.Reason) {
				continue
			}
			all = append(all, step.Reason)
		}
	}
	return strings.Join(all, "; ")
}

// disturbs reports whether a step of one of these kinds disturbs the node.
func (s *subject) disturbs(kinds ...plan.Kind) bool {
	return slices.ContainsFunc(kinds, func(k plan.Kind) bool { return s.has(k) && len(s.steps[k].Disturbs) > 0 })
}
