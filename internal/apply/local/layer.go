package local

import (
	"context"
	"errors"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/role"
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

// trees gives the file trees of a node's layers, the topmost first.
func (h *Host) trees(n *spec.Node) []string {
	var trees []string
	for _, digest := range []string{n.Layer, n.Base} {
		if digest != "" {
			trees = append(trees, h.Store.Tree(digest))
		}
	}
	return trees
}

// errNoNode: a node is there that the site no longer declares.
var errNoNode = errors.New("the node is not declared")
