package place

import (
	"cmp"
	"maps"
	"slices"

	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// An Origin is where a layer comes from.
type Origin struct {
	Has []string // the hosts that have it, by name

	layer   *spec.Layer
	site    *site.Site
	needs   map[string]int
	builder *observe.Host // the best of the hosts that need it, or nil if none is known
}

// OriginOf finds the hosts that have a layer and, if there are none, the host that should build it.
// needs maps each host that needs the layer to the number of its nodes that use it.
func OriginOf(l *spec.Layer, s *site.Site, hosts map[string]*observe.Host, needs map[string]int) *Origin {
	o := &Origin{layer: l, site: s, needs: needs}
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		if h := hosts[name]; !h.Unknown && h.Layers[l.Digest] {
			o.Has = append(o.Has, name)
		}
	}
	if len(o.Has) == 0 {
		for name := range needs {
			o.builder = o.BuilderFor(hosts[name])
		}
	}
	return o
}

// BuilderFor returns the host that builds the layer for host h: h itself, unless another host that needs
// the layer is known to be better.
func (o *Origin) BuilderFor(h *observe.Host) *observe.Host {
	if o.builder == nil || o.prefers(h, o.builder) {
		return h
	}
	return o.builder
}

// prefers reports whether a host should build the layer rather than another one. It prefers the
// host with the most of the layers below, then the one with the most nodes that need the layer, and
// then the first in the site.
func (o *Origin) prefers(h, other *observe.Host) bool {
	below := func(h *observe.Host) (n int) {
		for _, lower := range o.layer.Lower() {
			if h.Layers[lower] {
				n++
			}
		}
		return n
	}
	if order := cmp.Or(cmp.Compare(below(h), below(other)),
		cmp.Compare(o.needs[h.Name], o.needs[other.Name])); order != 0 {
		return order > 0
	}
	at := func(name string) int {
		return slices.IndexFunc(o.site.Hosts, func(h site.Host) bool { return h.Name == name })
	}
	return at(h.Name) < at(other.Name)
}
