package plan_test

import (
	"slices"
	"strings"
	"testing"

	"orrery/internal/engine"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// drifting returns a fleet on which the observatory is up, and a function that makes its nodes
// drift.
func drifting(t *testing.T) (*fleet, func(node string, all ...observe.Drift)) {
	t.Helper()
	f := newFleet("sv1")
	s := observatory()
	f.reach(t, s)
	return f, func(name string, all ...observe.Drift) {
		n, _ := s.Node(name)
		spelt, err := spec.NewBuilder(s).Node(n)
		if err != nil {
			t.Fatal(err)
		}
		f.hosts[0].AddDrift(engine.RefOf(spelt), all...)
	}
}

var (
	stoppedUnit = observe.Drift{Kind: observe.DriftService, How: observe.NotRunning, Subject: "receptor.service",
		Role: "receptor", Want: "running", Found: "stopped"}
	goneProgram = observe.Drift{Kind: observe.DriftProgram, How: observe.Gone, Subject: "/usr/bin/tar",
		Want: "as in its layer", Found: "gone"}
	editedFile = observe.Drift{Kind: observe.DriftFile, How: observe.Altered, Subject: "/etc/receptor.json",
		Role: "receptor", Want: "as its role makes it", Found: "changed"}
	sickNode = observe.Drift{Kind: observe.DriftHealth, How: observe.Failing, Subject: "tcp 7147", Role: "receptor",
		Want: "passed", Found: "failing"}
)

// TestMend: observed drift of a node is repaired, and its health is proven. The repair disturbs the
// node only if services must restart.
func TestMend(t *testing.T) {
	f, drift := drifting(t)
	s := observatory()
	drift("receptor1", goneProgram, stoppedUnit)
	drift("receptor2", editedFile, goneProgram, stoppedUnit, sickNode)
	p := f.up(t, s, plan.Goal{})
	wantLines(t, p,
		"node receptor1: repair: drifted: program /usr/bin/tar is gone, not as in its layer; service receptor.service is stopped, not running",
		"node receptor1: check: check health",
		"node receptor2: repair: drifted: file /etc/receptor.json is changed, not as its role makes it; program /usr/bin/tar is gone, not as in its layer; "+
			"service receptor.service is stopped, not running; and 1 more",
		"node receptor2: check: check health",
	)
	if got := p.DisturbedNodes(); !slices.Equal(got, []string{"receptor2"}) {
		t.Errorf("disturbed are %v", got)
	}
	if len(p.Steps[2].Drift) != 4 {
		t.Errorf("the step has %+v", p.Steps[2].Drift)
	}
	if r := f.run(p, 4); !r.OK() {
		t.Fatal(r.Failed)
	}
	f.wantReached(t, s)
	if again := f.up(t, s, plan.Goal{}); !again.Empty() {
		t.Errorf("left is\n%s", text(again))
	}
}

// TestMendOther: recreated nodes need no repair, and unselected nodes get none.
func TestMendOther(t *testing.T) {
	f, drift := drifting(t)
	drift("receptor1", goneProgram)
	drift("receptor2", editedFile)
	s := observatory()
	s.Roles[1].Apt = append(s.Roles[1].Apt, "jq")
	for _, line := range lines(f.up(t, s, plan.Goal{})) {
		if strings.Contains(line, "mend") {
			t.Error(line)
		}
	}
	wantLines(t, f.up(t, observatory(), plan.Goal{Nodes: map[string]bool{"receptor1": true}}),
		"node receptor1: repair: drifted: program /usr/bin/tar is gone, not as in its layer",
		"node receptor1: check: check health")

	s = observatory() // a role has changed as well
	s.Roles[1].Files[0].Content = []byte("{{.Node.ID}}\n")
	wantLines(t, f.up(t, s, plan.Goal{Nodes: map[string]bool{"receptor1": true}}),
		"node receptor1: repair: drifted: program /usr/bin/tar is gone, not as in its layer",
		"node receptor1: configure: receptor: file /etc/receptor.json changed", "node receptor1: check: check health")
}

// TestMendInBatches: repairs that disturb are done in batches, beginning with nodes that are
// unhealthy now, whatever is recorded.
func TestMendInBatches(t *testing.T) {
	f, drift := drifting(t)
	drift("receptor1", editedFile)
	drift("receptor2", editedFile, sickNode)
	s := observatory()
	s.Groups = []site.Group{{Name: "receptors", Nodes: []string{"receptor1", "receptor2"}, Batch: site.Batch{Nodes: 1}}}
	p := f.up(t, s, plan.Goal{})
	if len(p.Batches) != 2 || !slices.Equal(p.Batches[0], []string{"receptor2"}) ||
		!slices.Equal(p.Batches[1], []string{"receptor1"}) {
		t.Errorf("the batches are %v of\n%s", p.Batches, text(p))
	}
	if r := f.run(p, 4); !r.OK() {
		t.Fatal(r.Failed)
	}
	if again := f.up(t, s, plan.Goal{}); !again.Empty() {
		t.Errorf("left is\n%s", text(again))
	}
}
