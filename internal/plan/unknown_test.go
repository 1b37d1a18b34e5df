package plan

import (
	"strings"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/plan/overlay"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestUnknownHost: an unknown host is not treated as empty. No node is made that may be on it, and
// no node is moved or placed there.
//
// Promise (Other hosts): While a host does not answer, nothing is created that it may have. With
// control.TestSilentHost.
func TestUnknownHost(t *testing.T) {
	s, observed := onTwo(t, bare("here", "sv1"), bare("there1", "sv2"), bare("anywhere", ""), bare("to-move-on", "sv2"),
		bare("brand-new", "sv1"))
	can := map[string]observe.Capabilities{"lxc": {Containers: true}}
	known := observe.Host{Name: "sv1", Cpus: 8, Memory: 1 << 34, Engines: can,
		Nodes: []observe.Node{observed("to-move-on")}}
	hosts := []observe.Host{known, {Name: "sv2", Unknown: true}}
	p, err := Up(s, hosts, Goal{})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range p.Steps {
		if step.ForNode() || step.Host != "sv1" {
			t.Errorf("a step is planned: %v", step)
		}
	}
	if len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "sv2") {
		t.Errorf("the warnings are %q", p.Warnings)
	}
	for _, name := range []string{"here", "there1", "anywhere", "to-move-on", "brand-new"} {
		if !strings.Contains(strings.Join(p.Warnings, ""), name) {
			t.Errorf("node %s is not in the warnings %q", name, p.Warnings)
		}
	}
	if p := Down(s, hosts, Goal{}); p.Counts()[DestroyNode] != 1 {
		t.Errorf("what is known goes down: %v", p.Steps)
	}
	hosts[1] = observe.Host{Name: "sv2", Cpus: 8, Memory: 1 << 34, Engines: can} // it is back
	if p, err = Up(s, hosts, Goal{}); err != nil || p.Counts()[CreateNode] != 5 || p.Counts()[DestroyNode] != 1 ||
		len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "orrery move to-move-on --to sv2") {
		t.Errorf("once all is known: %v, %v", p, err)
	}
	if s := overlay.Spanning(&site.Site{Networks: []site.Network{{Name: "lan"}, {Name: "wire", Kind: site.Macvlan}},
		Nodes: []site.Node{
			{Name: "a", NICs: []site.NIC{{Network: "lan"}, {Network: "wire"}}},
			{Name: "b", NICs: []site.NIC{{Network: "lan"}, {Network: "wire"}}},
		}}, map[string]string{"a": "sv1", "b": "sv2"}); len(s) != 1 || strings.Join(s["lan"], " ") != "sv1 sv2" {
		t.Errorf("networks over hosts are %v", s)
	}
}

// bare returns a node without anything on it. If host is "", the node is not declared for one.
func bare(name, host string) site.Node {
	return site.Node{Name: name, ID: len(name), Engine: "lxc", Image: "debian", Host: host}
}

// onTwo returns a site of nodes on two hosts, and the observed hosts with the nodes that exist.
func onTwo(t *testing.T, nodes ...site.Node) (s *site.Site, observed func(name string) observe.Node) {
	s = &site.Site{
		Name: "s", Hosts: []site.Host{{Name: "sv1"}, {Name: "sv2", Address: "sv2"}},
		Images: []site.Image{{Name: "debian", Suite: "bookworm"}},
		Nodes:  nodes,
	}
	return s, func(name string) observe.Node {
		t.Helper()
		n, _ := s.Node(name)
		made, err := spec.NewBuilder(s).Node(n)
		if err != nil {
			t.Fatal(err)
		}
		return observe.Node{Node: *made, State: observe.Running, Configured: true}
	}
}
