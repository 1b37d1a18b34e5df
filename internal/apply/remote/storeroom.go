package remote

import (
	"context"

	"orrery/internal/image"
	"orrery/internal/wire"
)

// Layers gives the layers over there.
func (f *far) Layers(ctx context.Context) (all []image.Kept, err error) {
	err = f.ask(ctx, toStock, f.q(), nil, &all)
	for i := range all {
		all[i].Info = layerSaid(all[i].Info)
	}
	return all, err
}

// VerifyLayer lets the host read a layer.
func (f *far) VerifyLayer(ctx context.Context, digest string) error {
	q := f.q()
	q.Layers = []string{digest}
	return f.ask(ctx, toProve, q, nil, nil)
}

// RemoveLayers removes what nobody uses over there. What it has removed, it says even if it could not remove all.
func (f *far) RemoveLayers(ctx context.Context) ([]image.Info, error) {
	var gone []image.Info
	if err := f.ask(ctx, toClean, f.q(), func(_ *wire.Talk, w *word) error {
		if p := w.Progress; p != nil && p.Removed != nil && len(gone) < mostRemoved {
			gone = append(gone, layerSaid(*p.Removed))
		}
		return nil
	}, nil); err != nil {
		return gone, err
	}
	return gone, nil
}

// mostRemoved is how many layers a host may say at once that it has removed.
const mostRemoved = 10000

// layerSaid makes what a host says of a layer fit to be shown.
func layerSaid(i image.Info) image.Info {
	i.Digest, i.Title, i.Base, i.Content, i.By = shown(i.Digest), shown(i.Title), shown(i.Base), shown(i.Content), shown(i.By)
	for _, all := range [][]string{i.Lower, i.UsedBy} {
		for k := range all {
			all[k] = shown(all[k])
		}
	}
	return i
}

// stock does what is about the store.
func (on *lent) stock(ctx context.Context, about string, q *question, with *wire.Caller) (any, error) {
	switch about {
	case toStock:
		return on.Layers(ctx)
	case toProve:
		for _, digest := range q.Layers {
			if err := on.VerifyLayer(ctx, digest); err != nil {
				return nil, err
			}
		}
		return nil, nil
	case toClean:
		gone, err := on.RemoveLayers(ctx)
		for i := range gone {
			_ = with.Say(word{Progress: &progress{Removed: &gone[i]}})
		}
		return nil, err
	}
	return nil, unknown(about)
}
