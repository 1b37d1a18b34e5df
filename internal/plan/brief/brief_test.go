package brief

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"orrery/internal/plan"
	"orrery/internal/plan/stand"
	"orrery/internal/site/spec"
)

// The current and the desired node of a step.
var (
	current = &spec.Node{Name: "n1", Layer: "old"}
	desired = &spec.Node{Name: "n1", Layer: "new"}
)

// step returns a step about a node, which it disturbs if disturbs is set.
func step(kind plan.Kind, node, reason string, disturbs bool) *plan.Step {
	s := &plan.Step{Kind: kind, Host: "sv1", Subject: node, Reason: reason, Node: desired, Old: current}
	if disturbs {
		s.Disturbs = []string{node}
	}
	return s
}

// summary returns the lines about the steps, with their verbs.
func summary(steps ...*plan.Step) []string {
	for i, s := range steps {
		s.N = i
	}
	var all []string
	for _, l := range Lines(&plan.Plan{Steps: steps}) {
		all = append(all, l.Verb+" "+l.String())
	}
	return all
}

func want(t *testing.T, got []string, lines ...string) {
	t.Helper()
	if !slices.Equal(got, lines) {
		t.Errorf("got\n\t%s\nnot\n\t%s", strings.Join(got, "\n\t"), strings.Join(lines, "\n\t"))
	}
}

// TestNodes: the steps of a node become one line with its reason, how the node is disturbed, and what
// is lost.
func TestNodes(t *testing.T) {
	for _, c := range []struct {
		steps []*plan.Step
		line  string
	}{
		{[]*plan.Step{step(plan.CreateNode, "n1", "new", false), step(plan.StartNode, "n1", "new", false),
			step(plan.ConfigureNode, "n1", "apply roles", false), step(plan.CheckNode, "n1", "check health", false)},
			"create node n1: new"},
		{[]*plan.Step{step(plan.KillNode, "n1", "why", true), step(plan.ReplaceNode, "n1", "why, and the loss", true),
			step(plan.StartNode, "n1", "after the change", false), step(plan.ConfigureNode, "n1", "apply roles again", false)},
			"recreate node n1: role layer changed; " + stand.Loss},
		{[]*plan.Step{step(plan.StopNode, "n1", "id changed", true), step(plan.DestroyNode, "n1", "id changed", true),
			step(plan.CreateNode, "n1", "new", false)},
			"recreate node n1: id changed; " + stand.Loss},
		{[]*plan.Step{step(plan.DestroyNode, "n1", "no longer declared", true)},
			"destroy node n1: no longer declared; " + stand.Loss},
		{[]*plan.Step{step(plan.StopNode, "n1", "volumes changed", true),
			step(plan.ReshapeNode, "n1", "volumes changed", false),
			step(plan.StartNode, "n1", "after the change", false), step(plan.ConfigureNode, "n1", "file /x changed", true)},
			"update node n1: volumes changed; file /x changed; restarted"},
		{[]*plan.Step{step(plan.LimitNode, "n1", "memory changed", false)}, "update node n1: memory changed"},
		{[]*plan.Step{step(plan.ConfigureNode, "n1", "file /x changed", true),
			step(plan.CheckNode, "n1", "check health", false)},
			"configure node n1: file /x changed; services restart"},
		{[]*plan.Step{step(plan.StartNode, "n1", "not running", false),
			step(plan.ConfigureNode, "n1", "file /x changed", false)},
			"start node n1: not running; file /x changed"},
		{[]*plan.Step{step(plan.StopNode, "n1", "requested", true), step(plan.StartNode, "n1", "requested", false)},
			"restart node n1: requested; interrupted"},
		{[]*plan.Step{step(plan.RepairNode, "n1", "drifted: x", true)}, "repair node n1: drifted: x; interrupted"},
		{[]*plan.Step{step(plan.MoveLinks, "n1", "links are on the wrong networks", false)},
			"rewire node n1: links are on the wrong networks"},
		{[]*plan.Step{step(plan.CheckNode, "n1", "health not checked yet", false)}, "check node n1: health not checked yet"},
		{[]*plan.Step{step(plan.ReceiveNode, "n1", "a move was interrupted", false),
			step(plan.CleanUpNode, "n1", "it is on host sv2", false)}, "move node n1: a move was interrupted"},
		{[]*plan.Step{step(plan.DiscardNode, "n1", "requested", true)}, "discard node n1: requested; " + stand.Loss},
	} {
		want(t, summary(c.steps...), c.line)
	}
}

// TestGroups: nodes that change in the same way share a line, which names only some of many. Losses
// come first.
func TestGroups(t *testing.T) {
	var steps []*plan.Step
	for i := range 12 {
		steps = append(steps, step(plan.CreateNode, fmt.Sprint("n", i), "new", false))
	}
	steps = append(steps, step(plan.DestroyNode, "gone", "no longer declared", true))
	staged := step(plan.DestroyNode, "n0", "no longer declared", true)
	staged.Node, staged.Old = nil, &spec.Node{Staged: true, Release: 700}
	steps = append(steps, staged)
	want(t, summary(steps...), "destroy nodes gone, n0 of release 700: no longer declared; "+stand.Loss,
		"create nodes n0, n1, n2, n3, n4, n5, n6, n7 and 4 more: new")
	lines := Lines(&plan.Plan{Steps: steps})
	if got := Total(lines); got != "2 nodes to destroy, 12 to create" {
		t.Error(got)
	}
	if got := Text(Losses(lines)); got != "\n  destroy    nodes gone, n0 of release 700: no longer declared; "+stand.Loss {
		t.Error(got)
	}
}

// TestOthers: networks, layers, volumes and hosts follow the nodes, except for data that is lost.
func TestOthers(t *testing.T) {
	former := &spec.Network{Name: "lan"}
	got := summary(
		&plan.Step{Kind: plan.PrepareHost, Host: "sv1", Subject: "sv1", Reason: "settings"},
		&plan.Step{Kind: plan.MakeNetwork, Host: "sv1", Subject: "lan", Reason: "new"},
		&plan.Step{Kind: plan.MakeNetwork, Host: "sv2", Subject: "lan", Reason: "new"},
		&plan.Step{Kind: plan.MakeNetwork, Host: "sv1", Subject: "cam", Reason: "gateway changed", OldNetwork: former,
			Disturbs: []string{"n1"}},
		&plan.Step{Kind: plan.RemoveNetwork, Host: "sv1", Subject: "mac", Reason: "kind changed"},
		&plan.Step{Kind: plan.MakeNetwork, Host: "sv1", Subject: "mac", Reason: "kind changed"},
		&plan.Step{Kind: plan.RemoveNetwork, Host: "sv1", Subject: "old", Reason: "no longer declared"},
		&plan.Step{Kind: plan.BeginBatch, Host: "sv1", Subject: "1 of 2"},
		&plan.Step{Kind: plan.BuildLayer, Host: "sv1", Subject: "debian + a", Reason: "not in the store: d1"},
		&plan.Step{Kind: plan.BuildLayer, Host: "sv1", Subject: "debian + a, b", Reason: "not in the store: d2"},
		&plan.Step{Kind: plan.FetchLayer, Host: "sv2", Subject: "debian + a, b", Reason: "not in the store: d2, on sv1"},
		&plan.Step{Kind: plan.WriteNames, Host: "sv1", Subject: "sv1", Reason: "new"},
		&plan.Step{Kind: plan.WriteNames, Host: "sv2", Subject: "sv2", Reason: "new"},
		&plan.Step{Kind: plan.ForgetRelease, Host: "sv1", Subject: "700", Reason: "requested"},
		&plan.Step{Kind: plan.RemoveVolume, Host: "sv1", Subject: "data of n1", Reason: "requested"},
		step(plan.CreateNode, "n1", "new", false),
	)
	want(t, got,
		"delete volume data of n1: requested; "+lostVolume,
		"create node n1: new",
		"prepare host sv1: settings",
		"create network lan: new",
		"update network cam: gateway changed; interrupts n1",
		"recreate network mac: kind changed",
		"remove network old: no longer declared",
		"build 2 layers: not in the store",
		"fetch layer debian + a, b: not in the store",
		"update names of nodes on hosts sv1, sv2: new",
		"remove release 700: requested",
	)
}
