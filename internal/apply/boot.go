package apply

import (
	"encoding/json"
	"path/filepath"

	"orrery/internal/host"
	"orrery/internal/site/spec"
)

// A Boot is what a host does by itself after a reboot: the steps on this host, each with all that doing it takes (package plan/boot). It was planned by whoever steered last; the host needs
// nobody for it, and no site directory.
type Boot struct {
	Host  string            `json:"host"` // what the site calls the host
	Steps []json.RawMessage `json:"steps"`
}

// Digest names what is done; "": nothing is.
func (b *Boot) Digest() string {
	if len(b.Steps) == 0 {
		return ""
	}
	return spec.Digest(b)
}

// BootPath is where a host keeps that of a site.
func BootPath(dirs host.Dirs, key string) string {
	return filepath.Join(dirs.Site(key), "boot.json")
}
