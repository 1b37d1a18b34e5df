package plan

import (
	"maps"
	"slices"

	"orrery/internal/observe"
	"orrery/internal/plan/place"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/text/humanize"
)

// A layerPlanner plans the layers of nodes.
type layerPlanner struct {
	*planBuilder
	steps   map[string]int            // host and digest -> step that builds or fetches it
	fetched map[string]string         // digest -> last host that is planned to fetch it
	origins map[string]*place.Origin  // digest -> where the layer comes from
	needed  map[string]map[string]int // digest -> host -> number of nodes that need it, or nil if not counted yet
}

func newLayerPlanner(d *planBuilder) *layerPlanner {
	return &layerPlanner{
		planBuilder: d, steps: map[string]int{}, fetched: map[string]string{}, origins: map[string]*place.Origin{},
	}
}

// planNode plans the layers that a node needs, each once on a host and after the layers below it. It
// returns the steps to wait for.
func (d *layerPlanner) planNode(h *observe.Host, n *site.Node) []int {
	return d.planLayers(h, d.makerOf(n).Layers(n))
}

// planLayers plans layers on a host, each after the layers below it.
func (d *layerPlanner) planLayers(h *observe.Host, layers []*spec.Layer) []int {
	awaited := map[string]int{} // the topmost steps, by layer
	for i, l := range layers {
		var needs []int
		for _, lower := range l.Lower() {
			if step, ok := d.steps[h.Name+" "+lower]; ok {
				needs = append(needs, step)
				delete(awaited, lower)
				break
			}
		}
		if step, ok := d.planLayer(h, l, layers[:i], needs); ok {
			awaited[l.Digest] = step
		}
	}
	return slices.Sorted(maps.Values(awaited))
}

// planLayer plans that a host gets a layer. The host fetches it from hosts that have it or from the
// one that builds it for all, or it builds the layer itself. The layers in before may be below it.
func (d *layerPlanner) planLayer(h *observe.Host, l *spec.Layer, before []*spec.Layer, needs []int) (int, bool) {
	if h.Layers[l.Digest] {
		return 0, false
	}
	key := h.Name + " " + l.Digest
	if step, ok := d.steps[key]; ok {
		return step, true
	}
	s := Step{Kind: BuildLayer, Host: h.Name, Subject: l.Title, Reason: "not in the store: " + l.Digest, Layer: l,
		Undo: "kept in the store"}
	if sources, builder := d.sources(l, h); builder != h {
		s.Kind, s.Sources = FetchLayer, sources
		s.Reason += ", available on " + humanize.List(sources, 4)
		if builder != nil {
			s.Sources, s.Reason = []string{builder.Name}, "not in the store: "+l.Digest+", built on "+builder.Name
			d.planLayers(builder, append(slices.Clone(before), l))
			needs = append(needs, d.steps[builder.Name+" "+l.Digest])
		}
		s.After, d.fetched[l.Digest] = d.fetched[l.Digest], h.Name
	}
	s.Needs = needs
	step := d.add(s)
	d.steps[key] = step
	return step, true
}

// sources returns the hosts that have a layer. If there are none, builder is the host that builds
// it, which is itself if no other host needs the layer.
func (d *layerPlanner) sources(l *spec.Layer, itself *observe.Host) (all []string, builder *observe.Host) {
	if len(d.hosts) < 2 {
		return nil, itself
	}
	if d.needed == nil {
		d.countNeeds()
	}
	from, known := d.origins[l.Digest]
	if !known { // the same for all hosts: computed once, not by each of many hosts
		from = place.OriginOf(l, d.site, d.hosts, d.needed[l.Digest])
		d.origins[l.Digest] = from
	}
	if len(from.Has) > 0 {
		return from.Has, nil
	}
	return nil, from.BuilderFor(itself)
}

// countNeeds counts, for each layer and host, the nodes there that need it or will.
func (d *layerPlanner) countNeeds() {
	d.needed = map[string]map[string]int{}
	for i := range d.site.Nodes {
		n := &d.site.Nodes[i]
		h, ok := d.hosts[n.Host]
		if !ok || h.Unknown || !d.goal.selects(n.Name) || !d.isLocated(n) {
			continue
		}
		for _, l := range d.makerOf(n).Layers(n) {
			if d.needed[l.Digest] == nil {
				d.needed[l.Digest] = map[string]int{}
			}
			d.needed[l.Digest][h.Name]++
		}
	}
}
