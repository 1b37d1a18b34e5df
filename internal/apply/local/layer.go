package local

import (
	"context"
	"io"

	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/problem"
	"orrery/internal/role"
	"orrery/internal/site/spec"
)

// build makes a base image or role layer.
func (h runHost) build(ctx context.Context, l *spec.Layer, say func(string)) error {
	if l.IsBase() {
		return h.Backends.Layers.BuildBase(ctx, l, l.From, say)
	}
	f, err := h.Backends.Layers.OpenLog(l.Digest)
	if err != nil {
		return err
	}
	log := &redacted{h.Secrets.NewWriter(f), f}
	defer log.Close() //nolint:errcheck // what a log lacks at its end is no reason to fail
	fill := func(ctx context.Context, in host.Runner) error {
		if l.IsKernel() {
			return h.Backends.Packages.FillKernel(ctx, in, l, log)
		}
		return role.Build(ctx, in, l, h.Backends.Packages.Install, log, say)
	}
	if err := h.Backends.Layers.BuildLayer(ctx, l, l.From, fill, say); err != nil {
		return problem.New(problem.Kind(problem.ExitCode(err)), "layer %s was not built", l.Title).Because(err).
			Try("the whole output: orrery logs --layer %s", l.Digest)
	}
	return nil
}

// Receive stores a file from which a layer will be built.
func (h layerHost) Receive(ctx context.Context, digest string, rw io.ReadWriter) error {
	return h.Backends.Layers.Receive(ctx, digest, rw)
}

// Describe returns the records of layers in the host's store.
func (h layerHost) Describe(_ context.Context, layers []string) ([]image.Record, error) {
	all := make([]image.Record, len(layers))
	for i, digest := range layers {
		r, err := h.Backends.Layers.Record(digest)
		if err != nil {
			return nil, problem.New(problem.Failed, "the contents of layer %s are unknown", digest).Because(err).
				Try("orrery image verify")
		}
		all[i] = *r
	}
	return all, nil
}
