package remote

import (
	"context"

	"orrery/internal/image"
	"orrery/internal/transport/rpc"
)

// List returns the layers on the remote host.
func (f layerHost) List(ctx context.Context) (all []image.StoredLayer, err error) {
	all, err = layersMethod.call(ctx, f.remoteHost, none{})
	for i := range all {
		all[i].Info = sanitizeLayer(all[i].Info)
	}
	return all, err
}

var layersMethod = method[none, []image.StoredLayer]{
	name: "layers", callOptions: callOptions{maxBytes: listMaxBytes, long: true, abandoned: true},
	answer: func(ctx context.Context, c *serverCall, _ none) ([]image.StoredLayer, error) {
		return c.host().Layers.List(ctx)
	},
}

// Verify makes the remote host check a layer.
func (f layerHost) Verify(ctx context.Context, digest string) error {
	_, err := verifyLayerMethod.call(ctx, f.remoteHost, digest)
	return err
}

var verifyLayerMethod = method[string, none]{
	name: "verify layer", callOptions: callOptions{long: true, abandoned: true},
	answer: func(ctx context.Context, c *serverCall, digest string) (none, error) {
		return none{}, c.host().Layers.Verify(ctx, digest)
	},
}

// RemoveUnused removes the unused layers on the remote host. It returns the removed layers even if
// it could not remove all.
func (f layerHost) RemoveUnused(ctx context.Context) ([]image.Info, error) {
	var gone []image.Info
	_, err := removeLayersMethod.ask(ctx, f.Link, f.at, none{}, func(_ *rpc.Stream, w *response) error {
		if p := w.Progress; p != nil && p.Removed != nil && len(gone) < maxRemoved {
			gone = append(gone, sanitizeLayer(*p.Removed))
		}
		return nil
	})
	return gone, err
}

var removeLayersMethod = method[none, none]{
	name: "remove layers", callOptions: callOptions{long: true},
	answer: func(ctx context.Context, c *serverCall, _ none) (none, error) {
		gone, err := c.host().Layers.RemoveUnused(ctx)
		for i := range gone {
			_ = c.Send(response{Progress: &progress{Removed: &gone[i]}})
		}
		return none{}, err
	},
}

// maxRemoved limits how many removed layers a host may report at once.
const maxRemoved = 10000

// sanitizeLayer sanitizes a host's report on a layer.
func sanitizeLayer(i image.Info) image.Info {
	i.Digest, i.Title, i.Base, i.Content, i.By = sanitizeText(i.Digest), sanitizeText(i.Title), sanitizeText(i.Base),
		sanitizeText(i.Content),
		sanitizeText(i.By)
	for _, all := range [][]string{i.Lower, i.UsedBy} {
		for k := range all {
			all[k] = sanitizeText(all[k])
		}
	}
	return i
}
