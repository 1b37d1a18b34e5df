// Package local carries out the steps of a plan on the machine on which Orrery runs.
//
// A Worker does the steps. It knows nothing of the site but its key: everything needed for a step
// comes with the step. An apply.HostClient has the site and packs the steps. For a remote host, package
// remote encodes them and sends them to a Worker there.
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

// ThisMachine returns the machine that runs Orrery as a host of the site with this key. Name is the site's
// name for the host.
func ThisMachine(name, key string, dirs host.Dirs, engines map[string]engine.Engine, secrets apply.Secrets) *Host {
	return NewHost(SiteState{
		Name: name, Key: key, Dirs: dirs, Engines: engines, Secrets: secrets,
		Backends: backends.Local(dirs),
	})
}

// Log opens the output of the roles of a node when they were applied.
func (h nodeHost) Log(_ context.Context, node string) (io.ReadCloser, error) {
	return os.Open(filepath.Join(h.Dirs.Logs(h.Key), node+".log"))
}

// ByName returns the engines.
func (p *SiteState) ByName() map[string]engine.Engine { return maps.Clone(p.Engines) }
