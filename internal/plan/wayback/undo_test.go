package wayback_test

import (
	"slices"
	"strings"
	"testing"

	"orrery/internal/plan"
	"orrery/internal/plan/wayback"
	"orrery/internal/site/spec"
)

// TestUndo: each kind of step is undone by the step that restores the former state. Steps that
// leave nothing behind are skipped.
func TestUndo(t *testing.T) {
	old, changed := &spec.Node{Name: "db", ID: 1}, &spec.Node{Name: "db", ID: 1, Privileged: true}
	before, after := &spec.Network{Name: "lan", MTU: 1400}, &spec.Network{Name: "lan", MTU: 1500}
	for what, c := range map[string]struct {
		step plan.Step
		want plan.Kind // "" for none
		is   func(back *plan.Step) bool
	}{
		"a new network": {plan.Step{Kind: plan.MakeNetwork, Network: after}, plan.RemoveNetwork,
			func(s *plan.Step) bool { return s.Network == after }},
		"another network": {plan.Step{Kind: plan.MakeNetwork, Network: after, OldNetwork: before}, plan.MakeNetwork,
			func(s *plan.Step) bool { return s.Network == before && s.OldNetwork == after }},
		"a network less": {plan.Step{Kind: plan.RemoveNetwork, Network: before}, plan.MakeNetwork,
			func(s *plan.Step) bool { return s.Network == before && s.OldNetwork == nil }},
		"new names": {plan.Step{Kind: plan.WriteNames, Names: "n"}, plan.ForgetNames, nil},
		"other names": {plan.Step{Kind: plan.WriteNames, Names: "n", OldNames: "w"}, plan.RestoreNames,
			func(s *plan.Step) bool { return s.Names == "w" && s.OldNames == "n" }},
		"a new node": {plan.Step{Kind: plan.CreateNode, Node: changed}, plan.DestroyNode,
			func(s *plan.Step) bool { return s.Old == changed && s.Node == nil }},
		"a start": {plan.Step{Kind: plan.StartNode, Node: changed, Old: old}, plan.StopNode,
			func(s *plan.Step) bool { return s.Old == changed }},
		"a stop": {plan.Step{Kind: plan.StopNode, Old: old}, plan.StartNode,
			func(s *plan.Step) bool { return s.Node == old }},
		"a kill": {plan.Step{Kind: plan.KillNode, Old: old}, plan.StartNode,
			func(s *plan.Step) bool { return s.Node == old }},
		"another layer": {plan.Step{Kind: plan.ReplaceNode, Node: changed, Old: old}, plan.RestoreNode,
			func(s *plan.Step) bool { return s.Node == old && s.Old == changed }},
		"another shape": {plan.Step{Kind: plan.ReshapeNode, Node: changed, Old: old}, plan.ReshapeNode,
			func(s *plan.Step) bool { return s.Node == old && s.Old == changed }},
		"other limits": {plan.Step{Kind: plan.LimitNode, Node: changed, Old: old}, plan.LimitNode,
			func(s *plan.Step) bool { return s.Node == old && s.Old == changed }},
		"another config": {plan.Step{Kind: plan.ConfigureNode, Node: changed, Old: old}, plan.RevertNode,
			func(s *plan.Step) bool { return s.Node == old && s.Old == changed }},
		"the first config": {plan.Step{Kind: plan.ConfigureNode, Node: changed}, "", nil},
		"a check":          {plan.Step{Kind: plan.CheckNode, Node: changed, Old: old}, "", nil},
		"a layer":          {plan.Step{Kind: plan.BuildLayer}, "", nil},
		"a retirement":     {plan.Step{Kind: plan.RetireNode, Node: changed, Old: old}, plan.ActivateNode, nil},
		"an activation":    {plan.Step{Kind: plan.ActivateNode, Node: changed, Old: old}, plan.RetireNode, nil},
		"volumes":          {plan.Step{Kind: plan.TakeVolumes, Node: changed, Old: old}, plan.ReturnVolumes, nil},
		"a copy": {plan.Step{Kind: plan.CopyNode, Node: changed, Old: old, Peer: "sv2"}, plan.DiscardNode,
			func(s *plan.Step) bool { return s.Peer == "sv2" && s.Old == old }},
		"a node that came": {plan.Step{Kind: plan.ReceiveNode, Node: changed, Old: old, Peer: "sv2", Digest: "s"},
			plan.DiscardNode,
			func(s *plan.Step) bool { return s.Peer == "sv2" && s.Digest == "s" && s.Node == changed }},
		"a node that went": {plan.Step{Kind: plan.HandOverNode, Node: changed, Old: old, Peer: "sv2", Digest: "s"},
			plan.ReclaimNode,
			func(s *plan.Step) bool { return s.Peer == "sv2" && s.Digest == "s" && s.Old == old }},
		"what was kept": {plan.Step{Kind: plan.CleanUpNode, Old: old, Peer: "sv2"}, "", nil},
		"an end":        {plan.Step{Kind: plan.DestroyNode, Old: old}, "", nil},
	} {
		c.step.Host, c.step.Subject = "sv1", "db"
		back := wayback.Undo(&plan.Plan{Site: "karoo"}, []*plan.Step{&c.step})
		if c.want == "" {
			if len(back.Steps) > 0 {
				t.Errorf("%s: %v", what, back.Steps[0])
			}
			continue
		}
		if len(back.Steps) != 1 || back.Steps[0].Kind != c.want || back.Steps[0].Host != "sv1" ||
			back.Steps[0].Subject != "db" || c.is != nil && !c.is(back.Steps[0]) {
			t.Errorf("%s: %+v, not a step %s", what, back.Steps, c.want)
		}
	}
}

// TestUndoMoves: moved links go back, the last first.
func TestUndoMoves(t *testing.T) {
	a, b, c, d := &spec.Node{ID: 1}, &spec.Node{ID: 2}, &spec.Node{ID: 3}, &spec.Node{ID: 4}
	back := wayback.Undo(&plan.Plan{},
		[]*plan.Step{{Kind: plan.MoveLinks, Moves: []plan.Move{{Old: a, New: b}, {Old: c, New: d}}}})
	if len(back.Steps) != 1 || !slices.Equal(back.Steps[0].Moves, []plan.Move{{Old: d, New: c}, {Old: b, New: a}}) {
		t.Errorf("%+v", back.Steps)
	}
}

// TestUndoOrder: a step is undone after all later ones, even if a step in between cannot be undone.
// A destroyed node is not started.
func TestUndoOrder(t *testing.T) {
	n := &spec.Node{Name: "db"}
	all := []*plan.Step{
		{N: 0, Kind: plan.MakeNetwork, Subject: "lan", Network: &spec.Network{}},
		{N: 1, Kind: plan.CreateNode, Subject: "db", Node: n, Needs: []int{0}},
		{N: 2, Kind: plan.CheckNode, Subject: "db", Node: n, Needs: []int{1}}, // it cannot be undone
		{N: 3, Kind: plan.StartNode, Subject: "db", Node: n, Needs: []int{2}},
		{N: 4, Kind: plan.StopNode, Host: "sv1", Subject: "old", Old: n},
		{N: 5, Kind: plan.DestroyNode, Host: "sv1", Subject: "old", Old: n, Needs: []int{4}},
		{N: 6, Kind: plan.StopNode, Host: "sv2", Subject: "old", Old: n},
	}
	done := slices.Clone(all)
	slices.Reverse(done) // the order in which they ended does not matter
	back := wayback.Undo(&plan.Plan{Steps: all}, done)
	at := map[string]int{}
	var kinds []string
	for i, s := range back.Steps {
		at[string(s.Kind)+" "+s.Host+s.Subject] = i
		kinds = append(kinds, string(s.Kind)+" "+s.Host+s.Subject)
		if s.N != i {
			t.Errorf("step %d has the number %d", i, s.N)
		}
	}
	slices.Sort(kinds)
	if got := strings.Join(kinds, ", "); got != "destroy db, start sv2old, stop db, unnetwork lan" {
		t.Fatalf("taken back by %s", got)
	}
	if !slices.Equal(back.Steps[at["destroy db"]].Needs, []int{at["stop db"]}) ||
		!slices.Equal(back.Steps[at["unnetwork lan"]].Needs, []int{at["destroy db"]}) {
		t.Errorf("the order is %+v", back.Steps)
	}
}

// TestPutBack: in a failed batch, nodes that were disturbed and are not finished are restored, if
// their former state was kept. Finished nodes stay, and nodes that were not begun are untouched.
func TestPutBack(t *testing.T) {
	node := func(name string) *spec.Node { return &spec.Node{Name: name} }
	moved := node("moved")
	moved.NICs = []spec.NIC{{Network: "lan"}}
	var p plan.Plan
	add := func(kind plan.Kind, name string, wanted *spec.Node, batch int) *plan.Step {
		s := &plan.Step{N: len(p.Steps), Kind: kind, Host: "sv1", Subject: name, Old: node(name), Node: wanted, Batch: batch}
		if kind == plan.StopNode || kind == plan.DestroyNode {
			s.Disturbs = []string{name}
		}
		p.Steps = append(p.Steps, s)
		return s
	}
	whole := []*plan.Step{add(plan.StopNode, "whole", nil, 1), add(plan.StartNode, "whole", node("whole"), 1)}
	half := []*plan.Step{add(plan.StopNode, "half", nil, 1), add(plan.ReplaceNode, "half", node("half"), 1)}
	fails := add(plan.StartNode, "half", node("half"), 1)
	other := add(plan.StopNode, "zulu", nil, 1) // its networks change
	add(plan.ReshapeNode, "zulu", moved, 1)
	ended := add(plan.DestroyNode, "gone", nil, 1)
	add(plan.CreateNode, "gone", node("gone"), 1)
	add(plan.StopNode, "later", nil, 2)
	free := add(plan.StopNode, "free", nil, 0) // in no batch
	done := append(append(whole, half...), other, ended, free)
	back, left := wayback.Restore(&p, done, []*plan.Step{fails})
	if names := back.Nodes(); !slices.Equal(names, []string{"half"}) || len(back.Steps) != 3 {
		t.Errorf("put back are %v: %v", names, back.Steps)
	}
	if !slices.Equal(left, []string{"gone", "zulu"}) {
		t.Errorf("left are %v", left)
	}
}
