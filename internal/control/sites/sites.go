// Package sites has the operations on a site as a whole, or on some of its nodes: up and down, start
// and stop, and up again after a reboot. It also lists the sites and twins on this host.
package sites

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"orrery/internal/control"
	"orrery/internal/site"
	"orrery/internal/site/check"
)

// A State is a site, or a twin, of which something is known on this host.
type State struct {
	Site    string `json:"site"`
	Twin    string `json:"twin,omitempty"`
	Up      bool   `json:"up"` // it was brought up, and not taken down
	Nodes   int    `json:"nodes"`
	Running int    `json:"running"`
	Dir     string `json:"dir,omitempty"`  // it came from there; "": that is not known
	Gone    bool   `json:"gone,omitempty"` // no site file is there any more
}

// Key is what the site, or the twin, is known by on the host.
func (r State) Key() string { return r.site().Key() }

func (r State) site() *site.Site { return &site.Site{Name: r.Site, Twin: r.Twin} }

// Word says how the site is.
func (r State) Word() string {
	switch {
	case r.Up:
		return "up"
	case r.Nodes > 0:
		return "partly down"
	}
	return "down"
}

// All returns the sites and twins of which something is known on this host, by name.
func All(ctx context.Context, c *control.Session) ([]State, error) {
	entries, err := os.ReadDir(c.Dirs.Site(""))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	rows := []State{}
	for _, e := range entries {
		name, twin, _ := strings.Cut(e.Name(), ".")
		if !e.IsDir() || !check.Label(name) { // half made, by a run that was killed
			continue
		}
		r := State{Site: name, Twin: twin}
		m, up := c.Register().Marker(e.Name())
		if !up {
			m, _ = c.Register().FormerMarker(e.Name())
		}
		if of, err := c.Register().ReadTwin(e.Name()); err == nil && twin != "" {
			m.Dir = of.Dir
		}
		r.Up, r.Dir = up, m.Dir
		r.Gone = m.Dir != "" && !m.There()
		r.Nodes, r.Running = Count(ctx, c, r.site())
		rows = append(rows, r)
	}
	return rows, nil
}
