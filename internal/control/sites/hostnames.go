package sites

import (
	"context"
	"strings"

	"orrery/internal/control"
	"orrery/internal/host/hostsfile"
)

// HostNames are the names of nodes in the hosts file of this machine.
type HostNames struct {
	File    string     `json:"file"`
	Enabled bool       `json:"enabled"` // the file has the names of all sites that are up
	Names   []HostName `json:"names"`
}

// A HostName is an address in the hosts file, with its names.
type HostName struct {
	Site    string   `json:"site"`
	Address string   `json:"address"`
	Names   []string `json:"names"`
}

// ReadHostNames returns the names of nodes in the hosts file of this machine.
func ReadHostNames(c *control.Session) (HostNames, error) {
	return readHostNames(hostsfile.Local(c.Dirs))
}

// InstallHostNames writes the names of the nodes of all sites that are up to the hosts file of this
// machine, and keeps them there.
func InstallHostNames(ctx context.Context, c *control.Session) (HostNames, error) {
	f := hostsfile.Local(c.Dirs)
	if err := f.Enable(ctx); err != nil {
		return HostNames{}, err
	}
	return readHostNames(f)
}

// UninstallHostNames removes the names of nodes from the hosts file of this machine for good.
func UninstallHostNames(ctx context.Context, c *control.Session) (HostNames, error) {
	f := hostsfile.Local(c.Dirs)
	if err := f.Disable(ctx); err != nil {
		return HostNames{}, err
	}
	return readHostNames(f)
}

func readHostNames(f hostsfile.File) (HostNames, error) {
	found := HostNames{File: f.Path, Enabled: f.Enabled(), Names: []HostName{}}
	blocks, err := f.Blocks()
	if err != nil {
		return found, err
	}
	for _, b := range blocks {
		for line := range strings.Lines(string(b.Lines)) {
			if words := strings.Fields(line); len(words) > 1 {
				found.Names = append(found.Names, HostName{Site: b.Key, Address: words[0], Names: words[1:]})
			}
		}
	}
	return found, nil
}
