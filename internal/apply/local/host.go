// Package local does the steps of a plan on the machine on which Orrery runs.
//
// It has two halves. A Worker does steps, and knows nothing of the site but its key: what a step takes comes with the step. A Host is a Worker beside the
// site: it packs each step before the Worker gets it, and resolves what secrets steps refer to. A host that is reached over SSH will have the same two
// halves, with the encoding of steps between them.
package local

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"sync"

	"orrery/internal/apply"
	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/secret"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// Host does the steps of one site's plans on this machine.
type Host struct {
	*Worker
	*plan.Packer
	Store *image.Store
	Keys  *secret.Keyring

	lock  sync.Mutex
	lives *site.Site // what Live gave; nil: not yet, or other releases are live since
}

var _ apply.Worker = (*Host)(nil)

// New gives the host that runs Orrery, for a site.
func New(name string, dirs host.Dirs, s *site.Site, engines map[string]engine.Engine, store *image.Store) *Host {
	keys, packer := secret.NewKeyring(s, dirs), &plan.Packer{Site: s}
	at := Place{
		Name: name, Key: s.Key(), Dirs: dirs, Engines: engines, Secrets: secrets{keys, packer},
		Ground: Ground{Networks: bridges{}, Volumes: disks{dirs}, Kernel: sysctls{dirs}, Records: records{dirs}, Claims: dirs},
	}
	if store != nil {
		at.Ground.Layers = store
	}
	return &Host{Worker: NewWorker(at), Packer: packer, Store: store, Keys: keys}
}

// Do does one step.
func (h *Host) Do(ctx context.Context, s *plan.Step, say func(string)) error {
	whole, err := h.Pack(s, h.Live)
	if err != nil {
		return err
	}
	err = h.Worker.Do(ctx, whole, say)
	if s.Kind == plan.CommitSwitch {
		h.forgetLive()
	}
	return err
}

// Live gives the site with every node as the release makes it that is live. It is made once, as each node is told of all others.
func (h *Host) Live() (*site.Site, error) {
	h.lock.Lock()
	defer h.lock.Unlock()
	if h.lives != nil {
		return h.lives, nil
	}
	r, err := h.ReadReleases()
	if err != nil {
		return nil, err
	}
	h.lives, err = h.Packer.Live(r)
	return h.lives, err
}

func (h *Host) forgetLive() {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.lives = nil
}

// WriteReleases takes down which releases are live, safe against a power cut: it is the one record of it.
func (h *Host) WriteReleases(r observe.Releases) error {
	h.forgetLive()
	defer h.forgetLive()
	return h.Worker.WriteReleases(r)
}

// SiteOf gives the site as the release of a declared node makes it.
func (h *Host) SiteOf(n *site.Node) *site.Site { return h.Packer.SiteOf(n.Release) }

// Probe looks into the live nodes that run (of these names; nil: all), and notes with each what has drifted since its roles were applied.
// What has not been applied yet is no drift: that is for the plan.
func (h *Host) Probe(ctx context.Context, nodes []observe.Node, names map[string]bool) error {
	packer := &plan.Packer{Site: h.Site, Releases: h.Releases}
	wants := make([]apply.Want, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		if n.State != observe.Running || n.Staged || names != nil && !names[n.Name] {
			continue
		}
		var err error
		if wants[i].Node, wants[i].Duties, err = packer.Wanted(&n.Node); err != nil { // none, if it is on its way out
			return err
		}
	}
	return h.Worker.Probe(ctx, nodes, wants)
}

// Log opens what the roles of a node printed when they were applied.
func (p *Place) Log(node string) (io.ReadCloser, error) {
	return os.Open(filepath.Join(p.Dirs.Logs(p.Key), node+".log"))
}

// secrets gives the values of a site's secrets, and the files that have them in them.
type secrets struct {
	*secret.Keyring
	packer *plan.Packer
}

// Text renders a file.
func (s secrets) Text(ctx context.Context, t spec.SecretText) ([]byte, error) {
	return s.packer.SecretText(ctx, t, s.Value)
}
