package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"

	"orrery/internal/apply/local"
	"orrery/internal/engine/all"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/selector"
	"orrery/internal/site/sitefile"
)

// directory gives the site directory that is meant: -C, else the current one, else that of the only site that is up here.
func (a *app) directory() (string, error) {
	if a.siteDir != "" {
		return a.siteDir, nil
	}
	if _, err := os.Stat("site.toml"); err == nil {
		return ".", nil
	}
	if a.twin != "" {
		return a.twinDirectory()
	}
	up := slices.DeleteFunc(a.sitesUp(), func(m marker) bool { return m.Twin != "" })
	switch len(up) {
	case 1:
		if !up[0].there() {
			return "", problem.New(problem.Usage, "site %s is up on this host, but its directory is gone", up[0].Site).At(up[0].Dir).
				Try("orrery down --name %s takes it down; -C names the directory if it is elsewhere now", up[0].Site)
		}
		return up[0].Dir, nil
	case 0:
		return "", problem.New(problem.Usage, "no site: there is no site.toml here").Try("say -C DIRECTORY, or make one with orrery init; orrery ls lists the sites of this host")
	}
	return "", problem.New(problem.Usage, "which site? %d are up on this host", len(up)).Try("say -C %s, for instance; orrery ls lists them", up[0].Dir)
}

// load reads the site directory that is meant.
func (a *app) load() (*site.Site, error) {
	dir, err := a.directory()
	if err != nil {
		return nil, err
	}
	s, err := sitefile.Load(dir)
	if err != nil || a.twin == "" {
		return s, err
	}
	return a.asTwin(s, a.twin, 0)
}

// marker says, beside the state of a site, from which directory it was brought up; it is there while the site is up, and afterwards under another name.
type marker struct {
	Site string `json:"site"`
	Twin string `json:"twin,omitempty"`
	// Production: whether it is in production; nil: whoever wrote this down did not say so.
	Production *bool  `json:"production,omitempty"`
	Dir        string `json:"dir"`
}

// there reports whether a site file is still in the directory.
func (m marker) there() bool {
	_, err := os.Stat(filepath.Join(m.Dir, sitefile.Name))
	return err == nil
}

// formerPath is the marker of a site that was taken down.
func (a *app) formerPath(key string) string { return filepath.Join(a.dirs.Site(key), "down.json") }

// unmark notes that a site is not up any more.
func (a *app) unmark(key string) {
	_ = os.Rename(a.markerPath(key), a.formerPath(key))
}

func readMarker(path string) (m marker, ok bool) {
	text, err := os.ReadFile(path)
	return m, err == nil && json.Unmarshal(text, &m) == nil
}

func (a *app) markerPath(key string) string { return filepath.Join(a.dirs.Site(key), "up.json") }

// sitesUp gives the sites that were brought up on this host and not taken down.
func (a *app) sitesUp() []marker {
	paths, _ := filepath.Glob(a.markerPath("*"))
	var up []marker
	for _, path := range paths {
		if m, ok := readMarker(path); ok {
			up = append(up, m)
		}
	}
	return up
}

func (a *app) markUp(s *site.Site) error {
	dir, err := a.directory()
	if err != nil {
		return err
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	text, err := json.Marshal(marker{Site: s.Name, Twin: s.Twin, Dir: absolute, Production: &s.Production})
	if err != nil {
		return err
	}
	return host.WriteFile(host.File{Path: a.markerPath(s.Key()), Content: text, Mode: 0o600})
}

// here gives this machine as the host of a site, with the releases that are live on it.
func (a *app) here(s *site.Site) (*local.Host, error) {
	h, err := a.bare(s)
	if err != nil {
		return nil, err
	}
	return h, a.loadLive(h)
}

// bare gives this machine as the host of a site of which not much more than the key need be known.
func (a *app) bare(s *site.Site) (*local.Host, error) {
	store := image.Open(a.dirs.State)
	for _, h := range s.Hosts {
		if !h.Local() {
			return nil, problem.New(problem.Unable, "host %s is at %s: this version works on one machine only", h.Name, h.Address).
				At("site.toml").Try(`say address = "local", or leave the host out`)
		}
	}
	if len(s.Hosts) > 1 {
		return nil, problem.New(problem.Mistake, "hosts %s and %s are both this machine", s.Hosts[0].Name, s.Hosts[1].Name).At("site.toml").
			Try("keep one of them")
	}
	name := "local"
	if len(s.Hosts) == 1 {
		name = s.Hosts[0].Name
	}
	h := local.New(name, a.dirs, s, all.Engines(a.dirs, store), store)
	h.Guard = a.guard
	return h, nil
}

// seen gives the hosts of a site as they are.
func (a *app) seen(ctx context.Context, h *local.Host) ([]observe.Host, error) {
	if err := needRoot(); err != nil {
		return nil, err
	}
	o, err := h.Observe(ctx)
	return []observe.Host{o}, err
}

// probe looks into the nodes that run, and notes with them what has drifted.
func (a *app) probe(ctx context.Context, h *local.Host, hosts []observe.Host, chosen map[string]bool) error {
	for i := range hosts {
		if err := h.Probe(ctx, hosts[i].Nodes, chosen); err != nil {
			return err
		}
	}
	return nil
}

// target gives the site that is meant, this machine as its host, and the names of the nodes that selectors mean (nil: all).
func (a *app) target(selectors []string) (*site.Site, *local.Host, map[string]bool, error) {
	s, err := a.load()
	if err != nil {
		return nil, nil, nil, err
	}
	chosen, err := choose(s, selectors)
	if err != nil {
		return nil, nil, nil, err
	}
	h, err := a.here(s)
	return s, h, chosen, err
}

// choose gives the names of the nodes that selectors mean; nil means all.
func choose(s *site.Site, selectors []string) (map[string]bool, error) {
	if len(selectors) == 0 {
		return nil, nil
	}
	nodes, err := selector.Select(s, selectors...)
	if err != nil {
		return nil, err
	}
	chosen := map[string]bool{}
	for _, n := range nodes {
		chosen[n.Name] = true
	}
	return chosen, nil
}

// needRoot says that a verb is for root.
func needRoot() error {
	if os.Geteuid() == 0 {
		return nil
	}
	return problem.New(problem.Unable, "this needs root").Try("sudo orrery …")
}

// who names the person who runs Orrery, through sudo.
func who() string {
	if name := os.Getenv("SUDO_USER"); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return fmt.Sprint(os.Getuid())
}
