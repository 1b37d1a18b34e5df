package control

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/check"
)

// A SiteState is a site, or a twin, of which something is known on this host.
type SiteState struct {
	Site    string `json:"site"`
	Twin    string `json:"twin,omitempty"`
	Up      bool   `json:"up"` // it was brought up, and not taken down
	Nodes   int    `json:"nodes"`
	Running int    `json:"running"`
	Dir     string `json:"dir,omitempty"`  // it came from there; "": that is not known
	Gone    bool   `json:"gone,omitempty"` // no site file is there any more
}

// Key is what the site, or the twin, is known by on the host.
func (r SiteState) Key() string { return r.site().Key() }

func (r SiteState) site() *site.Site { return &site.Site{Name: r.Site, Twin: r.Twin} }

// State says in words how the site is.
func (r SiteState) State() string {
	switch {
	case r.Up:
		return "up"
	case r.Nodes > 0:
		return "partly down"
	}
	return "down"
}

// Sites gives the sites and twins of which something is known on this host, by name.
func (c *Session) Sites(ctx context.Context) ([]SiteState, error) {
	entries, err := os.ReadDir(c.Dirs.Site(""))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	rows := []SiteState{}
	for _, e := range entries {
		name, twin, _ := strings.Cut(e.Name(), ".")
		if !e.IsDir() || !check.Label(name) { // half made, by a run that was killed
			continue
		}
		r := SiteState{Site: name, Twin: twin}
		m, up := c.Marker(e.Name())
		if !up {
			m, _ = c.FormerMarker(e.Name())
		}
		if of, err := c.ReadTwin(e.Name()); err == nil && twin != "" {
			m.Dir = of.Dir
		}
		r.Up, r.Dir = up, m.Dir
		r.Gone = m.Dir != "" && !m.There()
		r.Nodes, r.Running = c.CountNodes(ctx, r.site())
		rows = append(rows, r)
	}
	return rows, nil
}

// siteByName gives what can be known of a site without its directory. One of which it is not known whether it is in production is taken for one.
func (c *Session) siteByName(name string) (*site.Site, error) {
	s := &site.Site{Name: name, Twin: c.Twin, Production: c.Twin == ""}
	if _, err := os.Stat(c.Dirs.Site(s.Key())); err != nil || !check.Label(name) || c.Twin != "" && !check.Label(c.Twin) {
		all, _ := filepath.Glob(c.Dirs.Site("[^.]*"))
		for i := range all {
			all[i] = filepath.Base(all[i])
		}
		p := problem.New(problem.Usage, "this host has no site %q", s.Key()).At(c.Dirs.Site(""))
		if near := problem.Nearest(s.Key(), all); near != "" {
			return nil, p.Try("did you mean %s?", near)
		}
		return nil, p.Try("orrery ls lists the sites")
	}
	if m, ok := c.Marker(s.Key()); ok && m.Production != nil {
		s.Production = *m.Production
	}
	return s, nil
}
