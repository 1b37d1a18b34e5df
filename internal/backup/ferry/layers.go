package ferry

import (
	"context"
	"errors"

	"orrery/internal/backup/vault"
	"orrery/internal/image"
	"orrery/internal/strict/jsonlimit"
)

// A layer is the same on all hosts that have it, and one of them gives it. Hosts say what they
// have, whoever takes the backup says who gives what, and takes a layer from nobody else.

// share says which layers the nodes stand on, and hears which of them this host gives. It reports
// whether there are more than before.
func (g *giving) share() (more bool, err error) {
	if !g.order.Layers {
		return false, nil
	}
	stands, err := g.set.Stands()
	if err != nil {
		return false, err
	}
	held := map[string]string{}
	for i := range stands {
		held[stands[i].Digest] = stands[i].Content
	}
	if err := g.tell(ofLayers, held); err != nil {
		return false, err
	}
	var give []string
	if err := g.hearOf(ofLayers, &give); err != nil {
		return false, err
	}
	before := len(g.set.Layers)
	g.set.Layers = map[string]bool{}
	for _, digest := range give {
		g.set.Layers[digest] = true
	}
	return len(give) > before, nil
}

// shares is how often hosts say which layers they have.
const shares = 2

// share hears which layers a host has, and says which of them it gives.
func (t *Taking) share(ctx context.Context, content []byte) error {
	if t.shared++; !t.Order.Layers || t.shared > shares {
		return errStrange
	}
	var held map[string]string
	if err := jsonlimit.Unmarshal(content, &held); err != nil {
		return err
	}
	for digest, sum := range held {
		if !image.IsDigest(digest) || !image.IsDigest(sum) {
			return vault.Illegal("layer", digest)
		}
	}
	give, err := t.Pace.Layers(ctx, held)
	if err != nil {
		return err
	}
	for _, digest := range give {
		if _, asked := t.gives[digest]; !asked {
			t.gives[digest] = held[digest]
		}
	}
	return t.line.tell(ofLayers, give)
}

// mayGive refuses a layer that another host gives, or that this one has given already.
func (t *Taking) mayGive(digest string) error {
	if _, gives := t.gives[digest]; !gives || t.Gave[digest] {
		return errors.New("it gives a layer that it was not asked for")
	}
	t.Gave[digest] = true
	return nil
}

// asSaid refuses layers of which a host says something else in the end than when it was chosen to give them.
func (t *Taking) asSaid() error {
	recorded := map[string]string{}
	for i := range t.Layers {
		recorded[t.Layers[i].Digest] = t.Layers[i].Content
	}
	for digest := range t.Gave {
		if recorded[digest] != t.gives[digest] {
			return errors.New("it says first one thing of a layer, then another")
		}
	}
	return nil
}
