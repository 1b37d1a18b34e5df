// Package local carries out the steps of a plan on the machine on which Orrery runs.
//
// A Worker does them, and knows nothing of the site but its key: what a step takes comes with the
// step. What is beside the site, and packs steps, is in package control. A host that is reached
// over SSH will have the encoding of steps in between.
package local

import (
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"

	"orrery/internal/apply"
	"orrery/internal/apply/local/backends"
	"orrery/internal/engine"
	"orrery/internal/host"
)

// New returns the machine that runs Orrery, as the host that a site calls by a name.
func New(name, key string, dirs host.Dirs, engines map[string]engine.Engine, secrets apply.Secrets) *Worker {
	return NewWorker(Place{
		Name: name, Key: key, Dirs: dirs, Engines: engines, Secrets: secrets,
		Ground: backends.Here(dirs),
	})
}

// Log opens what the roles of a node printed when they were applied.
func (h nodeHost) Log(_ context.Context, node string) (io.ReadCloser, error) {
	return os.Open(filepath.Join(h.Dirs.Logs(h.Key), node+".log"))
}

// ByName returns the engines.
func (p *Place) ByName() map[string]engine.Engine { return maps.Clone(p.Engines) }
