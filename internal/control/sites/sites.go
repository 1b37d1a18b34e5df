// Package sites has the operations on whole sites, or on some of their nodes. They are up and down,
// start and stop, and up again after a reboot. The package also lists the sites and twins on this
// machine.
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

// A State is the state of a site or twin on this machine.
type State struct {
	Site    string `json:"site"`
	Twin    string `json:"twin,omitempty"`
	Up      bool   `json:"up"` // it was brought up, and not taken down
	Nodes   int    `json:"nodes"`
	Running int    `json:"running"`
	Dir     string `json:"dir,omitempty"`  // site directory, or "" if unknown
	Gone    bool   `json:"gone,omitempty"` // the site file no longer exists
}

// Key returns the key of the site or twin.
func (r State) Key() string { return r.site().Key() }

func (r State) site() *site.Site { return &site.Site{Name: r.Site, Twin: r.Twin} }

// Text returns the state of the site in words.
func (r State) Text() string {
	switch {
	case r.Up:
		return "up"
	case r.Nodes > 0:
		return "partly down"
	}
	return "down"
}

// All returns the sites and twins on this machine, sorted by name.
func All(ctx context.Context, c *control.Session) ([]State, error) {
	entries, err := os.ReadDir(c.Dirs.Site(""))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	rows := []State{}
	for _, e := range entries {
		name, twin, _ := strings.Cut(e.Name(), ".")
		if !e.IsDir() || !check.ValidLabel(name) { // half created by a run that was killed
			continue
		}
		r := State{Site: name, Twin: twin}
		m, up := c.Register().Up(e.Name())
		if !up {
			m, _ = c.Register().FormerUp(e.Name())
		}
		if of, err := c.Register().ReadTwin(e.Name()); err == nil && twin != "" {
			m.Dir = of.Dir
		}
		r.Up, r.Dir = up, m.Dir
		r.Gone = m.Dir != "" && !m.Exists()
		r.Nodes, r.Running = Count(ctx, c, r.site())
		rows = append(rows, r)
	}
	return rows, nil
}
