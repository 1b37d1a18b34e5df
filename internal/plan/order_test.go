package plan_test

import (
	"slices"

	"orrery/internal/plan"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// wantOrder checks that every step comes after those that it needs, and that it needs what it must:
// the needs say what runs at the same time, so that the order of the list alone is not enough.
func wantOrder(t failer, p *plan.Plan, s *site.Site) {
	t.Helper()
	before := make([]map[int]bool, len(p.Steps)) // all that are done before, for each step
	for n, step := range p.Steps {
		if step.N != n {
			t.Fatalf("step %d says that it is step %d", n, step.N)
		}
		before[n] = map[int]bool{}
		for _, need := range step.Needs {
			if need >= n {
				t.Fatalf("step %d %s needs step %d, which comes later", n, step, need)
			}
			before[n][need] = true
			for m := range before[need] {
				before[n][m] = true
			}
		}
	}
	after := func(later, sooner *plan.Step) {
		t.Helper()
		if !before[later.N][sooner.N] {
			t.Fatalf("%s does not wait for %s:\n%s", later, sooner, text(p))
		}
	}
	waits, err := awaited(s)
	if err != nil {
		t.Fatalf("%v", err)
	}
	for _, a := range p.Steps {
		for _, b := range p.Steps {
			if mustPrecede(a, b, waits) {
				after(b, a)
			}
		}
	}
}

// ranks are the kinds of steps of one node, in order.
var ranks = map[plan.Kind]int{
	plan.StopNode: 1, plan.KillNode: 1, plan.DestroyNode: 2, plan.CreateNode: 3, plan.ReplaceNode: 3,
	plan.ReshapeNode: 3, plan.LimitNode: 3,
	plan.StartNode: 4, plan.ConfigureNode: 5, plan.CheckNode: 6,
}

// mustPrecede reports whether the kinds of two steps require an order.
func mustPrecede(a, b *plan.Step, waits map[string][]string) bool {
	if a.ForNode() && b.ForNode() && a.Subject == b.Subject && ranks[a.Kind] < ranks[b.Kind] {
		return true
	}
	if b.Kind == plan.ConfigureNode && (a.Kind == plan.CheckNode || a.Kind == plan.ConfigureNode) {
		for _, peer := range waits[b.Subject] {
			if peer == a.Subject {
				return true
			}
		}
	}
	if a.Host != b.Host {
		return false
	}
	switch {
	case a.Kind == plan.PrepareHost:
		return b.Kind == plan.StartNode
	case a.Kind == plan.WriteNames:
		return b.Kind == plan.StartNode && b.Node != nil
	case a.Kind == plan.BuildLayer && a.Layer.IsBase() && b.Kind == plan.BuildLayer:
		return b.Layer.Base == a.Layer.Digest
	case a.Kind == plan.BuildLayer && (b.Kind == plan.CreateNode || b.Kind == plan.ReplaceNode):
		return b.Node.Layer == a.Layer.Digest || b.Node.Base == a.Layer.Digest
	case a.Kind == plan.MakeNetwork && b.Kind == plan.StartNode:
		return onNetwork(b, a.Subject)
	case b.Kind == plan.RemoveNetwork && (a.Kind == plan.StopNode || a.Kind == plan.KillNode ||
		a.Kind == plan.DestroyNode):
		return wasOnNetwork(a, b.Subject)
	case a.Kind == plan.DestroyNode && b.Kind == plan.CreateNode:
		return a.Old.ID == b.Node.ID
	case a.Kind == plan.RemoveNetwork && b.Kind == plan.MakeNetwork:
		return a.Subject == b.Subject || share(a, b)
	case makesEnds(a) && b.Kind == plan.MakeNetwork:
		return b.Network.Parent != "" && a.Network.HasEnd(b.Network.Parent)
	case makesEnds(a) && b.Kind == plan.StartNode:
		return slices.ContainsFunc(b.Node.NICs, func(nic spec.NIC) bool {
			return nic.Parent != "" && a.Network.HasEnd(nic.Parent)
		})
	}
	return false
}

// makesEnds reports whether a step makes a veth pair with new ends.
func makesEnds(s *plan.Step) bool {
	return s.Kind == plan.MakeNetwork && s.Network.Kind == spec.VethPair && s.OldNetwork == nil
}

// share reports whether a removed network has the subnet or the interface of a new one. Only one
// network of a host can have it.
func share(removed, made *plan.Step) bool {
	before, after := removed.Network, made.Network
	return before.Subnet != "" && before.Subnet == after.Subnet || before.Parent != "" && before.Parent == after.Parent
}

func onNetwork(s *plan.Step, network string) bool {
	for _, nic := range s.Node.NICs {
		if nic.Network == network {
			return true
		}
	}
	return false
}

func wasOnNetwork(s *plan.Step, network string) bool {
	if s.Kind == plan.DestroyNode {
		return false // it does not run by then
	}
	for _, nic := range s.Old.NICs {
		if nic.Network == network {
			return true
		}
	}
	return false
}
