package plan

import "slices"

// Undo plans how steps that have been done are taken back, the last first. Steps that cannot
// be taken back, or leave nothing that disturbs (a layer in the store), are passed over.
func Undo(p *Plan, done []*Step) *Plan {
	back := &Plan{Site: p.Site}
	for _, s := range slices.Backward(done) {
		inverse, ok := inverseOf(s)
		if !ok {
			continue
		}
		inverse.Host, inverse.Subject, inverse.Reason = s.Host, s.Subject, "undo"
		inverse.N = len(back.Steps)
		if inverse.N > 0 {
			inverse.Needs = []int{inverse.N - 1}
		}
		back.Steps = append(back.Steps, &inverse)
	}
	return back
}

func inverseOf(s *Step) (Step, bool) {
	switch s.Kind {
	case MakeNetwork:
		return Step{Kind: RemoveNetwork, Network: s.Network}, true
	case RemoveNetwork:
		return Step{Kind: MakeNetwork, Network: s.Network}, true
	case WriteNames:
		return Step{Kind: ForgetNames}, true
	case CreateNode:
		return Step{Kind: DestroyNode, Was: s.Node}, true
	case StartNode:
		return Step{Kind: StopNode, Was: s.Node}, true
	case StopNode:
		return Step{Kind: StartNode, Node: s.Was, Was: s.Was}, true
	case ReplaceNode:
		return Step{Kind: RestoreNode, Node: s.Was, Was: s.Node}, true
	case ReshapeNode:
		return Step{Kind: ReshapeNode, Node: s.Was, Was: s.Node}, true
	case LimitNode:
		return Step{Kind: LimitNode, Node: s.Was, Was: s.Node}, true
	case ConfigureNode:
		return Step{Kind: RevertNode, Node: s.Was, Was: s.Node}, s.Was != nil
	}
	return Step{}, false
}
