package ferry

import (
	"context"
	"errors"

	"orrery/internal/backup/vault"
	"orrery/internal/image"
	"orrery/internal/strict/jsonlimit"
)

// A layer is the same on all hosts that have it, and one of them sends it. Hosts report which
// layers they have. The machine with the vault decides which host sends which layer, and accepts a
// layer only from that host.

// exchangeLayers reports which layers the nodes use, and receives the list of those that this host must
// send. It returns whether there are more than before.
func (g *backupSender) exchangeLayers() (more bool, err error) {
	if !g.order.Layers {
		return false, nil
	}
	stands, err := g.set.CurrentLayers()
	if err != nil {
		return false, err
	}
	held := map[string]string{}
	for i := range stands {
		held[stands[i].Digest] = stands[i].Content
	}
	if err := g.sendJSON(msgLayers, held); err != nil {
		return false, err
	}
	var give []string
	if err := g.recvJSON(msgLayers, &give); err != nil {
		return false, err
	}
	before := len(g.set.Layers)
	g.set.Layers = map[string]bool{}
	for _, digest := range give {
		g.set.Layers[digest] = true
	}
	return len(give) > before, nil
}

// layerRounds is how often hosts report which layers they have.
const layerRounds = 2

// assignLayers receives the list of a host's layers, and answers with those that the host must send.
func (t *BackupReceiver) assignLayers(ctx context.Context, content []byte) error {
	if t.shared++; !t.Request.Layers || t.shared > layerRounds {
		return errUnexpected
	}
	var held map[string]string
	if err := jsonlimit.Unmarshal(content, &held); err != nil {
		return err
	}
	for digest, sum := range held {
		if !image.IsDigest(digest) || !image.IsDigest(sum) {
			return vault.InvalidName("layer", digest)
		}
	}
	give, err := t.Barrier.Layers(ctx, held)
	if err != nil {
		return err
	}
	for _, digest := range give {
		if _, asked := t.gives[digest]; !asked {
			t.gives[digest] = held[digest]
		}
	}
	return t.conn.sendJSON(msgLayers, give)
}

// checkLayer returns an error for a layer that another host must send, or that this one has already
// sent.
func (t *BackupReceiver) checkLayer(digest string) error {
	if _, gives := t.gives[digest]; !gives || t.Sent[digest] {
		return errors.New("it sent a layer that was not requested")
	}
	t.Sent[digest] = true
	return nil
}

// checkLayerReports returns an error if the host's final records of layers differ from what it first reported.
func (t *BackupReceiver) checkLayerReports() error {
	recorded := map[string]string{}
	for i := range t.Layers {
		recorded[t.Layers[i].Digest] = t.Layers[i].Content
	}
	for digest := range t.Sent {
		if recorded[digest] != t.gives[digest] {
			return errors.New("its two reports of a layer differ")
		}
	}
	return nil
}
