package plan

import "slices"

// Undo plans how steps that have been done, or tried, are taken back: each after all those that came after it. Steps that
// cannot be taken back, or leave nothing that disturbs (a layer in the store), are passed over.
func Undo(p *Plan, done []*Step) *Plan {
	back := &Plan{Site: p.Site}
	gone := map[string]bool{} // nodes that nothing brings back
	followers := map[int][]*Step{}
	for _, s := range done {
		if s.Kind == DestroyNode {
			gone[s.Host+" "+s.Subject] = true
		}
		for _, need := range s.Needs {
			followers[need] = append(followers[need], s)
		}
	}
	last := slices.SortedFunc(slices.Values(done), func(a, b *Step) int { return b.N - a.N })
	after := map[int][]int{} // step -> those of the way back that leave the place as it was after that step
	for _, s := range last {
		var needs []int
		for _, follower := range followers[s.N] {
			needs = append(needs, after[follower.N]...)
		}
		slices.Sort(needs)
		needs = slices.Compact(needs)
		inverse, ok := inverseOf(s)
		if !ok || inverse.Kind == StartNode && gone[s.Host+" "+s.Subject] {
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

func inverseOf(s *Step) (Step, bool) {
	switch s.Kind {
	case MakeNetwork:
		if s.WasNetwork != nil {
			return Step{Kind: MakeNetwork, Network: s.WasNetwork, WasNetwork: s.Network}, true
		}
		return Step{Kind: RemoveNetwork, Network: s.Network}, true
	case RemoveNetwork:
		return Step{Kind: MakeNetwork, Network: s.Network}, true
	case WriteNames:
		if s.WasNames != "" {
			return Step{Kind: RestoreNames, Names: s.WasNames, WasNames: s.Names}, true
		}
		return Step{Kind: ForgetNames}, true
	case StartNode:
		return Step{Kind: StopNode, Was: s.Node}, true
	case StopNode, KillNode:
		return Step{Kind: StartNode, Node: s.Was, Was: s.Was}, true
	case CommitSwitch:
		return Step{Kind: CommitSwitch, Releases: s.WasReleases, WasReleases: s.Releases}, true
	case MoveLinks:
		back := make([]Move, 0, len(s.Moves))
		for _, m := range slices.Backward(s.Moves) {
			back = append(back, Move{Was: m.Is, Is: m.Was})
		}
		return Step{Kind: MoveLinks, Moves: back}, true
	case CopyNode, ReceiveNode:
		return Step{Kind: DropNode, Peer: s.Peer, Was: s.Was, Node: s.Node, Sum: s.Sum}, true
	case GiveNode:
		return Step{Kind: ReclaimNode, Peer: s.Peer, Was: s.Was, Node: s.Node, Sum: s.Sum}, true
	case ConfigureNode:
		return Step{Kind: RevertNode, Node: s.Was, Was: s.Node}, s.Was != nil
	}
	kind, known := opposite[s.Kind]
	return Step{Kind: kind, Node: s.Was, Was: s.Node}, known
}

// opposite are the kinds of steps that make of a node again what it was.
var opposite = map[Kind]Kind{
	CreateNode: DestroyNode, ReplaceNode: RestoreNode, ReshapeNode: ReshapeNode, LimitNode: LimitNode,
	RetireNode: ActivateNode, ActivateNode: RetireNode, TakeVolumes: ReturnVolumes,
}
