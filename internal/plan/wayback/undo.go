package wayback

import (
	"slices"

	"orrery/internal/plan"
)

// Undo plans how steps that were done or attempted are undone. Each step is undone after all steps
// that came after it. Undo skips steps that cannot be undone, or that leave nothing harmful behind,
// such as a layer in the store.
func Undo(p *plan.Plan, done []*plan.Step) *plan.Plan {
	back := &plan.Plan{Site: p.Site}
	gone := map[string]bool{} // nodes that cannot be restored
	followers := map[int][]*plan.Step{}
	for _, s := range done {
		if s.Kind == plan.DestroyNode {
			gone[s.Host+" "+s.Subject] = true
		}
		for _, need := range s.Needs {
			followers[need] = append(followers[need], s)
		}
	}
	last := slices.SortedFunc(slices.Values(done), func(a, b *plan.Step) int { return b.N - a.N })
	after := map[int][]int{} // step -> steps of the result that restore the state after that step
	for _, s := range last {
		var needs []int
		for _, follower := range followers[s.N] {
			needs = append(needs, after[follower.N]...)
		}
		slices.Sort(needs)
		needs = slices.Compact(needs)
		inverse, ok := inverseOf(s)
		if !ok || inverse.Kind == plan.StartNode && gone[s.Host+" "+s.Subject] {
			after[s.N] = needs
			continue
		}
		inverse.Host, inverse.Subject, inverse.Reason, inverse.Needs = s.Host, s.Subject, "undo", needs
		inverse.N = len(back.Steps)
		after[s.N] = []int{inverse.N}
		back.Steps = append(back.Steps, &inverse)
	}
	return back
}

func inverseOf(s *plan.Step) (plan.Step, bool) {
	switch s.Kind {
	case plan.MakeNetwork:
		if s.OldNetwork != nil {
			return plan.Step{Kind: plan.MakeNetwork, Network: s.OldNetwork, OldNetwork: s.Network}, true
		}
		return plan.Step{Kind: plan.RemoveNetwork, Network: s.Network}, true
	case plan.RemoveNetwork:
		return plan.Step{Kind: plan.MakeNetwork, Network: s.Network}, true
	case plan.WriteNames:
		if s.OldNames != "" {
			return plan.Step{Kind: plan.RestoreNames, Names: s.OldNames, OldNames: s.Names}, true
		}
		return plan.Step{Kind: plan.ForgetNames}, true
	case plan.StartNode:
		return plan.Step{Kind: plan.StopNode, Old: s.Node}, true
	case plan.StopNode, plan.KillNode:
		return plan.Step{Kind: plan.StartNode, Node: s.Old, Old: s.Old}, true
	case plan.CommitSwitch:
		return plan.Step{Kind: plan.CommitSwitch, Releases: s.OldReleases, OldReleases: s.Releases}, true
	case plan.MoveLinks:
		back := make([]plan.Move, 0, len(s.Moves))
		for _, m := range slices.Backward(s.Moves) {
			back = append(back, plan.Move{Old: m.New, New: m.Old})
		}
		return plan.Step{Kind: plan.MoveLinks, Moves: back}, true
	case plan.CopyNode, plan.ReceiveNode:
		return plan.Step{Kind: plan.DiscardNode, Peer: s.Peer, Old: s.Old, Node: s.Node, Digest: s.Digest}, true
	case plan.HandOverNode:
		return plan.Step{Kind: plan.ReclaimNode, Peer: s.Peer, Old: s.Old, Node: s.Node, Digest: s.Digest}, true
	case plan.ConfigureNode:
		return plan.Step{Kind: plan.RevertNode, Node: s.Old, Old: s.Node}, s.Old != nil
	}
	kind, known := inverseKinds[s.Kind]
	return plan.Step{Kind: kind, Node: s.Old, Old: s.Node}, known
}

// inverseKinds maps each kind of step to the kind that restores the node.
var inverseKinds = map[plan.Kind]plan.Kind{
	plan.CreateNode: plan.DestroyNode, plan.ReplaceNode: plan.RestoreNode, plan.ReshapeNode: plan.ReshapeNode,
	plan.LimitNode:  plan.LimitNode,
	plan.RetireNode: plan.ActivateNode, plan.ActivateNode: plan.RetireNode, plan.TakeVolumes: plan.ReturnVolumes,
}
