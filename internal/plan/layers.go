package plan

import (
	"cmp"
	"maps"
	"slices"

	"orrery/internal/observe"
	"orrery/internal/phrase"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// layer plans the layers that a node needs, each once a host and after those that it stands on, and gives the steps to wait for.
func (d *draft) layer(h *observe.Host, n *site.Node) []int {
	return d.layersOf(h, d.makerOf(n).Layers(n))
}

// layersOf plans some layers on a host, of which each comes after those that it stands on.
func (d *draft) layersOf(h *observe.Host, all []*spec.Layer) []int {
	awaited := map[string]int{} // the topmost steps, by layer
	for i, l := range all {
		var needs []int
		for _, lower := range l.Lower() {
			if step, ok := d.layers[h.Name+" "+lower]; ok {
				needs = append(needs, step)
				delete(awaited, lower)
				break
			}
		}
		if step, ok := d.provide(h, l, all[:i], needs); ok {
			awaited[l.Digest] = step
		}
	}
	return slices.Sorted(maps.Values(awaited))
}

// provide plans that a host has a layer: it fetches it from the hosts that have it, or from the one that builds it for all, or is that one. Those before it are what it may stand on.
func (d *draft) provide(h *observe.Host, l *spec.Layer, before []*spec.Layer, needs []int) (int, bool) {
	if h.Layers[l.Digest] {
		return 0, false
	}
	key := h.Name + " " + l.Digest
	if step, ok := d.layers[key]; ok {
		return step, true
	}
	s := Step{Kind: BuildLayer, Host: h.Name, Subject: l.Title, Reason: "not in the store: " + l.Digest, Layer: l, Undo: "kept in the store"}
	if sources, builder := d.sources(l, h); builder != h {
		s.Kind, s.Sources = FetchLayer, sources
		s.Reason += ", and in that of " + phrase.List(sources, 4)
		if builder != nil {
			s.Sources, s.Reason = []string{builder.Name}, "not in the store: "+l.Digest+", and built on "+builder.Name
			d.layersOf(builder, append(slices.Clone(before), l))
			needs = append(needs, d.layers[builder.Name+" "+l.Digest])
		}
		s.After, d.fetched[l.Digest] = d.fetched[l.Digest], h.Name
	}
	s.Needs = needs
	step := d.add(s)
	d.layers[key] = step
	return step, true
}

// An origin is where a layer comes from.
type origin struct {
	has     []string      // the hosts that have it
	builder *observe.Host // of those that need it, the one that is to build it if none has it; nil: none is known to need it
}

// sources gives the hosts that have a layer. If there are none, builder is the one that builds it. If nobody else needs it, that is the host itself.
func (d *draft) sources(l *spec.Layer, itself *observe.Host) (all []string, builder *observe.Host) {
	if len(d.hosts) < 2 {
		return nil, itself
	}
	from, known := d.origins[l.Digest]
	if !known { // it is the same for all hosts: of many, each would look at all
		from = d.originOf(l)
		d.origins[l.Digest] = from
	}
	switch {
	case len(from.has) > 0:
		return from.has, nil
	case from.builder == nil || d.needed[l.Digest][itself.Name] == 0 && d.builds(l, itself, from.builder):
		return nil, itself
	}
	return nil, from.builder
}

// originOf looks at all hosts for those that have a layer and, if there are none, for the one that is to build it.
func (d *draft) originOf(l *spec.Layer) (o origin) {
	for _, name := range slices.Sorted(maps.Keys(d.hosts)) {
		if h := d.hosts[name]; !h.Unknown && h.Layers[l.Digest] {
			o.has = append(o.has, name)
		}
	}
	if len(o.has) > 0 {
		return o
	}
	if d.needed == nil {
		d.countNeeds()
	}
	for name := range d.needed[l.Digest] {
		if h := d.hosts[name]; o.builder == nil || d.builds(l, h, o.builder) {
			o.builder = h
		}
	}
	return o
}

// builds reports whether a host is to build a layer rather than another one: the one that has most of the layers below it, of those the one with most of the nodes that need it, and of those the first in the site.
func (d *draft) builds(l *spec.Layer, h, other *observe.Host) bool {
	place := func(name string) int {
		return slices.IndexFunc(d.site.Hosts, func(h site.Host) bool { return h.Name == name })
	}
	below := func(h *observe.Host) (n int) {
		for _, lower := range l.Lower() {
			if h.Layers[lower] {
				n++
			}
		}
		return n
	}
	needs := d.needed[l.Digest]
	if prefers := cmp.Or(cmp.Compare(below(h), below(other)), cmp.Compare(needs[h.Name], needs[other.Name])); prefers != 0 {
		return prefers > 0
	}
	return place(h.Name) < place(other.Name)
}

// countNeeds counts, for each layer and host, the nodes there that stand on it, or will.
func (d *draft) countNeeds() {
	d.needed = map[string]map[string]int{}
	for i := range d.site.Nodes {
		n := &d.site.Nodes[i]
		h, ok := d.hosts[n.Host]
		if !ok || h.Unknown || !d.goal.concerns(n.Name) || !d.certain(n) {
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
