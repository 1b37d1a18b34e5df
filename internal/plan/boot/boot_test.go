package boot

import (
	"strings"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

func node(id int, name string, change func(*observe.Node)) observe.Node {
	n := observe.Node{Node: spec.Node{ID: id, Name: name, Site: "karoo"}, State: observe.Running, Configured: true}
	n.Autostart = true
	n.Config.Health = "h"
	if change != nil {
		change(&n)
	}
	return n
}

func words(steps []*plan.Step) string {
	var all []string
	for _, s := range steps {
		all = append(all, string(s.Kind)+" "+s.Subject)
	}
	return strings.Join(all, ", ")
}

// TestNow: after a reboot, a host does the steps that are still correct, in an order in which they
// are possible.
func TestNow(t *testing.T) {
	lan := observe.Network{Network: spec.Network{Site: "karoo", Name: "lan", NAT: true}}
	wire := observe.Network{Network: spec.Network{Site: "karoo", Name: "wire", Kind: spec.VethPair}}
	h := observe.Host{Name: "sv1", Names: "n",
		Networks: []observe.Network{lan, {Network: spec.Network{Site: "karoo+700", Name: "lan"}}, wire},
		Nodes: []observe.Node{
			node(1, "one", nil),
			node(2, "off", func(n *observe.Node) { n.Autostart = false }),
			node(3, "beside", func(n *observe.Node) { n.Staged = true }),
			node(4, "new", func(n *observe.Node) { n.Configured = false }),
			node(5, "two", func(n *observe.Node) { n.Config.Health = "" }),
		}}
	p := Plan(&site.Site{Name: "karoo"}, []observe.Host{h, {Name: "sv2", Unknown: true}})
	if got := words(p.Steps); got != "network wire, network lan, names sv1, start one, check one, start two" {
		t.Errorf("planned is %s", got)
	}
	after := h
	after.Names, after.Networks, after.Settings = "", nil, map[string]string{"net.ipv4.ip_forward": "0"}
	after.Nodes = nil
	for _, n := range h.Nodes {
		n.State = observe.Stopped
		after.Nodes = append(after.Nodes, n)
	}
	todo, others := ValidSteps(p.Steps, &after)
	if got := words(todo); got != "prepare sv1, network wire, network lan, names sv1, start one, check one, start two" ||
		strings.Join(others, " ") != "new" {
		t.Errorf("after a reboot, it is %s, without %v", got, others)
	}
	for i, s := range todo {
		if s.N != i {
			t.Errorf("step %d has the number %d", i, s.N)
		}
		for _, need := range s.Needs {
			if need >= i {
				t.Errorf("step %d needs %d", i, need)
			}
		}
	}
	if len(todo) > 4 && len(todo[4].Needs) != 4 {
		t.Errorf("the first node needs %v", todo[4].Needs)
	}

	after.Nodes[0].Limits.Memory++ // in an interrupted run
	after.Networks = []observe.Network{lan, wire}
	after.Networks[0].Drift = []observe.NetworkDrift{observe.LinkMissing}
	after.Names, after.Settings = "n", nil
	todo, others = ValidSteps(p.Steps, &after)
	if got := words(todo); got != "network lan, start two" || strings.Join(others, " ") != "one new" ||
		todo[0].OldNetwork == nil {
		t.Errorf("it is %s, without %v", got, others)
	}
	after.Nodes = after.Nodes[1:] // it was given to another host
	if todo, others = ValidSteps(p.Steps, &after); strings.Contains(words(todo), "one") ||
		strings.Join(others, " ") != "new" {
		t.Errorf("it is %s, without %v", words(todo), others)
	}
	if todo, others = ValidSteps(p.Steps, &h); len(todo) > 0 || len(others) > 0 {
		t.Errorf("of what runs, %s, %v", words(todo), others)
	}
}

// TestPublished: after a reboot, a host forwards and makes its networks with their published ports.
func TestPublished(t *testing.T) {
	const ports = "web=8080:80/tcp>10.0.0.11"
	lan := observe.Network{Network: spec.Network{Site: "karoo", Name: "lan", Publish: ports}}
	h := observe.Host{Name: "sv1", Networks: []observe.Network{lan}, Nodes: []observe.Node{node(1, "web", nil)}}
	p := Plan(&site.Site{Name: "karoo"}, []observe.Host{h})
	after := observe.Host{Name: "sv1", Nodes: []observe.Node{h.Nodes[0]},
		Settings: map[string]string{"net.ipv4.ip_forward": "0"}}
	after.Nodes[0].State = observe.Stopped
	todo, _ := ValidSteps(p.Steps, &after)
	if got := words(todo); got != "prepare sv1, network lan, start web, check web" || todo[1].Network.Publish != ports {
		t.Errorf("after a reboot, it is %s", got)
	}
}
