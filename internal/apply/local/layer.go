package local

import (
	"context"
	"errors"
	"time"

	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/role"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// build makes a base image or role layer.
func (h *Host) build(ctx context.Context, l *spec.Layer, say func(string)) error {
	if l.IsBase() {
		return h.Store.BuildBase(ctx, l, h.Site.Mirror, say)
	}
	f, err := h.Store.OpenLog(l.Digest)
	if err != nil {
		return err
	}
	log := &redacted{h.Keys.NewWriter(f), f}
	defer log.Close() //nolint:errcheck // what a log lacks at its end is no reason to fail
	fill := func(ctx context.Context, in host.Runner) error {
		return role.Build(ctx, in, l, h.Store.InstallApt, log, say)
	}
	if err := h.Store.BuildLayer(ctx, l, h.Site.Mirror, fill, log, say); err != nil {
		return problem.New(problem.Kind(problem.Exit(err)), "layer %s was not built", l.Title).Because(err).
			Try("the whole output: orrery logs --layer %s", l.Digest)
	}
	return nil
}

// Took tells how long a step took that was like this one, the last build of a layer of the same image and roles; 0: none is on record.
func (h *Host) Took(s *plan.Step) time.Duration {
	if s.Kind != plan.BuildLayer || h.Store == nil {
		return 0
	}
	return h.Store.Took(s.Layer.Title)
}

// trees gives the file trees of a node's layers, the topmost first.
func (h *Host) trees(n *spec.Node) []string {
	var trees []string
	for _, digest := range n.Layers() {
		trees = append(trees, h.Store.Tree(digest))
	}
	return trees
}

// siteOf gives the site as the release of a node makes it.
func (h *Host) siteOf(n *spec.Node) *site.Site {
	if s, ok := h.Releases[n.Release]; ok && h.Site.Stage != n.Release {
		return s
	}
	return h.Site
}

// SiteOf gives the site as the release of a declared node makes it.
func (h *Host) SiteOf(n *site.Node) *site.Site { return h.siteOf(&spec.Node{Release: n.Release}) }

// declared gives the declaration of a node, and the site that it is in.
func (h *Host) declared(n *spec.Node) (*site.Site, *site.Node, error) {
	s := h.siteOf(n)
	if declared, ok := s.Node(n.Name); ok && declared.Release == n.Release {
		return s, declared, nil
	}
	return nil, nil, errNoNode
}

// Live gives the site with every node as the release makes it that is live. It is made once, as each node is told of all others.
func (h *Host) Live() (*site.Site, error) {
	if h.Site.Stage != 0 {
		return h.Site, nil
	}
	h.releases.Lock()
	defer h.releases.Unlock()
	if h.lives != nil {
		return h.lives, nil
	}
	r, err := h.ReadReleases()
	if err != nil {
		return nil, err
	}
	h.lives, err = plan.Released(h.Site, []observe.Host{{Releases: r}}, h.Releases)
	return h.lives, err
}

// errNoNode: a node is there that the site no longer declares.
var errNoNode = errors.New("the node is not declared")
