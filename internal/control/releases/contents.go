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
)

// Contents are what a node of a release consists of.
type Contents struct {
	Node     string            `json:"node"`
	ID       int               `json:"id"`
	Base     string            `json:"base"`
	Layer    string            `json:"layer,omitempty"`
	Content  []string          `json:"content"` // digests of what the layers hold
	Roles    []string          `json:"roles"`
	Packages map[string]string `json:"packages"` // Debian packages with their versions
	Python   map[string]string `json:"python"`   // Python packages with their versions
}

// Show tells what the nodes of a release consist of that selectors mean, from the records of their layers.
func Show(ctx context.Context, c *control.Session, s *site.Site, number int, selectors []string) ([]Contents, error) {
	h, chosen, err := c.Chosen(s, selectors)
	if err != nil {
		return nil, err
	}
	hosts, err := c.Seen(ctx, apply.Alone(h))
	if err != nil {
		return nil, err
	}
	var all []Contents
	for i := range hosts[0].Nodes {
		n := &hosts[0].Nodes[i]
		if n.Release != number || chosen != nil && !chosen[n.Name] {
			continue
		}
		one, err := contentsOf(c.Store(), s, n)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return nil, problem.New(problem.Mistake, "no node of release %s is on this host", site.ReleaseName(number)).At(s.Key()).Try("orrery stage --release %d", number)
	}
	return all, nil
}

func contentsOf(store *image.Store, s *site.Site, n *observe.Node) (Contents, error) {
	one := Contents{Node: n.Name, ID: n.ID, Base: n.Base, Layer: n.Layer, Packages: map[string]string{}, Python: map[string]string{}}
	if declared, ok := s.Node(n.Name); ok {
		one.Roles = declared.Roles
	}
	for _, digest := range slices.Backward(n.Layers()) {
		r, err := store.Record(digest)
		if err != nil {
			return one, problem.New(problem.Failed, "node %s: the contents of layer %s are not known", n.Name, digest).Because(err).Try("orrery image verify")
		}
		one.Content = append(one.Content, r.Content)
		versions(one.Packages, r.Packages, "=")
		versions(one.Python, r.Python, "==")
	}
	return one, nil
}

func versions(to map[string]string, packages []string, sign string) {
	for _, p := range packages {
		name, version, _ := strings.Cut(p, sign)
		to[name] = version
	}
}
