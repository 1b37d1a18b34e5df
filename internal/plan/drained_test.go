package plan

import (
	"strings"
	"testing"

	"orrery/internal/observe"
)

// TestDrainedHost: nodes on a drained host continue there. Other nodes are placed elsewhere, or
// left alone if they are declared for that host.
func TestDrainedHost(t *testing.T) {
	s, observed := onTwo(t, bare("a", "sv2"), bare("ab", ""), bare("new", ""), bare("fixed", "sv2"),
		bare("to-move", "sv2"))
	can := map[string]observe.Capabilities{"lxc": {Containers: true}}
	hosts := []observe.Host{
		{Name: "sv1", Cpus: 8, Memory: 1 << 34, Engines: can, Nodes: []observe.Node{observed("to-move")}},
		{Name: "sv2", Cpus: 64, Memory: 1 << 36, Engines: can, Drained: &observe.Drain{Who: "ada"},
			Nodes: []observe.Node{observed("a"), observed("ab")}},
	}
	p, err := Up(s, hosts, Goal{})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range p.Steps {
		if step.Kind == DestroyNode || step.Kind == CreateNode && (step.Subject != "new" || step.Host != "sv1") {
			t.Errorf("planned is %v on %s", step, step.Host)
		}
	}
	if p.Counts()[CreateNode] != 1 || len(p.Warnings) != 1 ||
		!strings.Contains(p.Warnings[0], "sv2 is drained (orrery host undrain sv2): fixed, to-move") {
		t.Errorf("planned is %v; the warnings are %q", p.Steps, p.Warnings)
	}
	hosts[1].Drained = nil
	if p, err = Up(s, hosts, Goal{}); err != nil || p.Counts()[CreateNode] != 3 || p.Counts()[DestroyNode] != 1 ||
		len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "orrery move to-move --to sv2") {
		t.Errorf("once it is not: %v, %v", p, err)
	}
}
