package layers

import (
	"context"
	"slices"

	"orrery/internal/control"
	"orrery/internal/control/hosts"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/site"
	"orrery/internal/site/selector"
	"orrery/internal/site/spec"
	"orrery/internal/site/twin"
)

// Build makes hosts build the layers that the selected nodes need. It returns these layers, each
// once.
func Build(ctx context.Context, c *control.Session, selectors []string) ([]*spec.Layer, error) {
	s, err := c.Load()
	if err != nil {
		return nil, err
	}
	f, chosen, err := control.SelectedHosts(ctx, c, s, selectors)
	if err != nil {
		return nil, err
	}
	j := &control.Job{Session: c, Site: s, Hosts: f, Do: control.Steps(func(hosts []observe.Host) (*plan.Plan, error) {
		return plan.Build(s, hosts, plan.Goal{Releases: f.Views().Releases(), Nodes: chosen})
	})}
	if _, err := j.Run(ctx); err != nil {
		return nil, err
	}
	nodes, err := selector.Select(s, selectors...)
	if err != nil {
		return nil, err
	}
	var all []*spec.Layer
	maker, seen := spec.NewBuilder(s), map[string]bool{}
	for _, n := range nodes {
		for _, l := range maker.Layers(n) {
			if !seen[l.Digest] {
				seen[l.Digest] = true
				all = append(all, l)
			}
		}
	}
	return all, nil
}

// allRecipes returns the layers of the site as declared, of its releases, and of its twins. Base
// layers come before the layers on top of them.
func allRecipes(s *site.Site) ([]*spec.Layer, error) {
	views := []*site.Site{s}
	for _, r := range s.Releases {
		made, err := twin.Release(s, r.Number)
		if err != nil {
			return nil, err
		}
		views = append(views, made)
	}
	if len(s.Nodes) > 0 {
		for _, release := range append([]site.Release{{}}, s.Releases...) {
			made, err := twin.New(s, twin.Options{Name: "mirror", Release: release.Number})
			if err != nil {
				return nil, err
			}
			views = append(views, made)
		}
	}
	var bases, roles []*spec.Layer
	seen := map[string]bool{}
	for _, view := range views {
		maker := spec.NewBuilder(view)
		for i := range view.Nodes {
			for _, l := range maker.Layers(&view.Nodes[i]) {
				switch {
				case seen[l.Digest]:
				case l.IsBase():
					bases = append(bases, l)
				default:
					roles = append(roles, l)
				}
				seen[l.Digest] = true
			}
		}
	}
	return append(bases, roles...), nil
}

// BuildLocal builds the layers of a site that are missing in the store of this machine, whatever hosts
// the site has.
func BuildLocal(ctx context.Context, c *control.Session, s *site.Site) error {
	if _, err := hosts.HashImages(ctx, s); err != nil {
		return err
	}
	alone := *s
	alone.Hosts, alone.Nodes = nil, slices.Clone(s.Nodes)
	for i := range alone.Nodes {
		alone.Nodes[i].Host = ""
	}
	all, err := allRecipes(&alone)
	if err != nil {
		return err
	}
	return buildMissing(ctx, c, &alone, all)
}

// buildMissing builds the layers that are not in the store.
func buildMissing(ctx context.Context, c *control.Session, s *site.Site, recipes []*spec.Layer) error {
	f, err := c.Hosts(ctx, s)
	if err != nil {
		return err
	}
	j := &control.Job{Session: c, Site: s, Hosts: f, Do: control.Steps(func(hosts []observe.Host) (*plan.Plan, error) {
		p := &plan.Plan{Site: s.Name}
		step := map[string]int{}
		for _, l := range recipes {
			if hosts[0].Layers[l.Digest] {
				continue
			}
			var needs []int
			for _, digest := range l.Lower() {
				if below, ok := step[digest]; ok {
					needs = append(needs, below)
				}
			}
			step[l.Digest] = len(p.Steps)
			p.Steps = append(p.Steps, &plan.Step{
				N: len(p.Steps), Kind: plan.BuildLayer, Host: hosts[0].Name, Subject: l.Title,
				Reason: "not in the store: " + l.Digest, Needs: needs, Layer: l,
			})
		}
		return p, nil
	})}
	_, err = j.Run(ctx)
	return err
}
