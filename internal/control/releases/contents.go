package releases

import (
	"context"
	"slices"
	"strings"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/image"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// Contents lists what a node of a release consists of.
type Contents struct {
	Node     string            `json:"node"`
	ID       int               `json:"id"`
	Base     string            `json:"base"`
	Layer    string            `json:"layer,omitempty"`
	Content  []string          `json:"content"` // digests of the layers' content
	Roles    []string          `json:"roles"`
	Packages map[string]string `json:"packages"` // Debian packages with their versions
	Python   map[string]string `json:"python"`   // Python packages with their versions

	node *spec.Node // as recorded
}

// Show returns the contents of the selected nodes of a release, from the records of their layers.
func Show(ctx context.Context, c *control.Session, s *site.Site, number int, selectors []string) ([]Contents, error) {
	f, chosen, err := control.SelectedHosts(ctx, c, s, selectors)
	if err != nil {
		return nil, err
	}
	seen, err := c.Observe(ctx, f)
	if err != nil {
		return nil, err
	}
	return show(ctx, f, s, seen, number, chosen)
}

// show returns the contents of those observed nodes that are chosen, or of all if chosen is nil.
func show(ctx context.Context, f *apply.Fleet, s *site.Site, seen []observe.Host, number int,
	chosen map[string]bool) ([]Contents, error) {
	all := make([][]Contents, len(f.All))
	err := f.ForEach(func(i int, h *apply.HostClient) (err error) {
		nodes := slices.DeleteFunc(slices.Clone(seen[i].Nodes),
			func(n observe.Node) bool { return n.Release != number || chosen != nil && !chosen[n.Name] })
		all[i], err = contentsOn(ctx, h, s, nodes)
		return err
	})
	if err != nil {
		return nil, err
	}
	of := slices.Concat(all...)
	if len(of) == 0 {
		return nil, problem.New(problem.Mistake, "release %s has no nodes", site.ReleaseName(number)).At(s.Key()).
			Try("orrery stage --release %d", number)
	}
	return of, nil
}

// contentsOn returns the contents of nodes on a host.
func contentsOn(ctx context.Context, h *apply.HostClient, s *site.Site, nodes []observe.Node) ([]Contents, error) {
	var layers []string
	for i := range nodes {
		layers = append(layers, nodes[i].Layers()...)
	}
	slices.Sort(layers)
	layers = slices.Compact(layers)
	records, err := h.Layers.Describe(ctx, layers)
	if err != nil {
		return nil, err
	}
	known := map[string]*image.Record{}
	for i, digest := range layers {
		known[digest] = &records[i]
	}
	var all []Contents
	for i := range nodes {
		all = append(all, contentsOf(known, s, &nodes[i]))
	}
	return all, nil
}

func contentsOf(layers map[string]*image.Record, s *site.Site, n *observe.Node) Contents {
	one := Contents{Node: n.Name, ID: n.ID, Base: n.Base, Layer: n.Layer, Packages: map[string]string{},
		Python: map[string]string{}, node: &n.Node}
	if declared, ok := s.Node(n.Name); ok {
		one.Roles = declared.Roles
	}
	for _, digest := range slices.Backward(n.Layers()) {
		r := layers[digest]
		one.Content = append(one.Content, r.Content)
		versions(one.Packages, r.Packages, "=")
		versions(one.Python, r.Python, "==")
	}
	return one
}

func versions(to map[string]string, packages []string, sign string) {
	for _, p := range packages {
		name, version, _ := strings.Cut(p, sign)
		to[name] = version
	}
}
