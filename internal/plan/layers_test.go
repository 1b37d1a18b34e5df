package plan

import (
	"slices"
	"strings"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestLayersOverHosts: a layer is built on one host only, or on none if a host has it. Each host
// that fetches it has its sources, and the host that fetches before it.
func TestLayersOverHosts(t *testing.T) {
	base := func(s *site.Site) string {
		return newPlanBuilder(s, nil, Goal{}).makerOf(&s.Nodes[0]).Layers(&s.Nodes[0])[0].Digest
	}
	for what, c := range map[string]struct {
		change func(s *site.Site, hosts []observe.Host)
		want   string
	}{
		"nobody has it": {func(*site.Site, []observe.Host) {},
			"sv1 builds; sv2 fetches from sv1; sv3 fetches from sv1 after sv2"},
		"one has most of the nodes": {func(s *site.Site, _ []observe.Host) { s.Nodes[0].Host = "sv3" },
			"sv2 fetches from sv3; sv3 builds"},
		"one has it": {func(s *site.Site, hosts []observe.Host) { hosts[2].Layers = map[string]bool{base(s): true} },
			"sv1 fetches from sv3; sv2 fetches from sv3 after sv1"},
		"two have it": {func(s *site.Site, hosts []observe.Host) {
			hosts[0].Layers, hosts[2].Layers = map[string]bool{base(s): true}, map[string]bool{base(s): true}
		}, "sv2 fetches from sv1 sv3"},
		"one that has no node has it": {func(s *site.Site, hosts []observe.Host) {
			s.Nodes, hosts[2].Layers = s.Nodes[:2], map[string]bool{base(s): true}
		}, "sv1 fetches from sv3; sv2 fetches from sv3 after sv1"},
		"all have it": {func(s *site.Site, hosts []observe.Host) {
			for i := range hosts {
				hosts[i].Layers = map[string]bool{base(s): true}
			}
		}, ""},
		"one alone": {func(s *site.Site, _ []observe.Host) { s.Nodes = s.Nodes[1:2] }, "sv2 builds"},
		"what is not known of a host is none": {func(s *site.Site, hosts []observe.Host) {
			for i := range 2 {
				// A node that is on no other host might be there, so it is not made. These nodes
				// exist and are recreated.
				hosts[i].Nodes = []observe.Node{{Node: *newNode(s, i), State: observe.Broken}}
			}
			hosts[2] = observe.Host{Name: "sv3", Unknown: true, Layers: map[string]bool{base(s): true}}
		}, "sv1 builds; sv2 fetches from sv1"},
	} {
		t.Run(what, func(t *testing.T) {
			s, hosts := spanning()
			c.change(s, hosts)
			p, err := Up(s, hosts, Goal{})
			if err != nil {
				t.Fatal(err)
			}
			if got := layersIn(t, p, hosts); got != c.want {
				t.Errorf("it plans %q", got)
			}
		})
	}
}

func newNode(s *site.Site, i int) *spec.Node {
	n, err := newPlanBuilder(s, nil, Goal{}).maker.Node(&s.Nodes[i])
	if err != nil {
		panic(err)
	}
	return n
}

// layersIn describes the steps of a plan for layers, and checks that each source has the layer by
// then.
func layersIn(t *testing.T, p *Plan, hosts []observe.Host) string {
	t.Helper()
	var all []string
	for _, step := range p.Steps {
		switch step.Kind {
		case BuildLayer:
			all = append(all, step.Host+" builds")
		case FetchLayer:
			all = append(all, strings.TrimSuffix(step.Host+" fetches from "+strings.Join(step.Sources, " ")+" after "+
				step.After, " after "))
			for _, source := range step.Sources {
				stored := slices.ContainsFunc(hosts, func(h observe.Host) bool {
					return h.Name == source && h.Layers[step.Layer.Digest]
				})
				builds := slices.ContainsFunc(step.Needs, func(n int) bool {
					return p.Steps[n].Kind == BuildLayer && p.Steps[n].Host == source && p.Steps[n].Layer.Digest == step.Layer.Digest
				})
				if !stored && !builds {
					t.Errorf("%s: %s has not got it by then", step, source)
				}
			}
		case CreateNode:
			lacks := !slices.ContainsFunc(hosts, func(h observe.Host) bool { return h.Name == step.Host && len(h.Layers) > 0 })
			if lacks && !slices.ContainsFunc(step.Needs, func(n int) bool { return p.Steps[n].Layer != nil }) {
				t.Errorf("%s does not wait for its layers", step)
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}
