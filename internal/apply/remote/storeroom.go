package remote

import (
	"context"

	"orrery/internal/image"
	"orrery/internal/transport/rpc"
)

// List returns the layers on the remote host.
func (f layerHost) List(ctx context.Context) (all []image.Kept, err error) {
	all, err = layersMethod.call(ctx, f.far, none{})
	for i := range all {
		all[i].Info = layerSaid(all[i].Info)
	}
	return all, err
}

var layersMethod = method[none, []image.Kept]{
	name: "layers", traits: traits{maxBytes: listMaxBytes, long: true, abandoned: true},
	answer: func(ctx context.Context, c *received, _ none) ([]image.Kept, error) {
		return c.host().Layers.List(ctx)
	},
}

// Verify makes the remote host check a layer.
func (f layerHost) Verify(ctx context.Context, digest string) error {
	_, err := verifyLayerMethod.call(ctx, f.far, digest)
	return err
}

var verifyLayerMethod = method[string, none]{
	name: "verify layer", traits: traits{long: true, abandoned: true},
	answer: func(ctx context.Context, c *received, digest string) (none, error) {
		return none{}, c.host().Layers.Verify(ctx, digest)
	},
}

// RemoveUnused removes the unused layers on the remote host. It returns the removed layers even if
// it could not remove all.
func (f layerHost) RemoveUnused(ctx context.Context) ([]image.Info, error) {
	var gone []image.Info
	_, err := removeLayersMethod.ask(ctx, f.Link, f.at, none{}, func(_ *rpc.Talk, w *word) error {
		if p := w.Progress; p != nil && p.Removed != nil && len(gone) < maxRemoved {
			gone = append(gone, layerSaid(*p.Removed))
		}
		return nil
	})
	return gone, err
}

var removeLayersMethod = method[none, none]{
	name: "remove layers", traits: traits{long: true},
	answer: func(ctx context.Context, c *received, _ none) (none, error) {
		gone, err := c.host().Layers.RemoveUnused(ctx)
		for i := range gone {
			_ = c.Say(word{Progress: &progress{Removed: &gone[i]}})
		}
		return none{}, err
	},
}

// maxRemoved limits how many removed layers a host may report at once.
const maxRemoved = 10000

// layerSaid sanitizes a host's report on a layer.
func layerSaid(i image.Info) image.Info {
	i.Digest, i.Title, i.Base, i.Content, i.By = shown(i.Digest), shown(i.Title), shown(i.Base), shown(i.Content),
		shown(i.By)
	for _, all := range [][]string{i.Lower, i.UsedBy} {
		for k := range all {
			all[k] = shown(all[k])
		}
	}
	return i
}
