package control

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"orrery/internal/control/hosts"
	"orrery/internal/control/register"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
	"orrery/internal/text/humanize"
)

// Directory returns the site directory: the one given by -C, directly or by the name of a site that
// is up on this machine, else the current directory, else that of the only site that is up.
func (c *Session) Directory() (string, error) {
	if c.SiteDir != "" {
		return named(c)
	}
	if _, err := os.Stat("site.toml"); err == nil {
		return ".", nil
	}
	if c.Twin != "" {
		r, err := OnlyTwin(c)
		return r.Dir, err
	}
	up := originalsUp(c)
	switch len(up) {
	case 1:
		return existing(up[0])
	case 0:
		return "", problem.New(problem.Usage, "no site: no site.toml in this directory").
			Try("use -C DIRECTORY, or create a site with orrery init; orrery ls lists the sites of this host")
	}
	return "", problem.New(problem.Usage, "no site selected: %d are up on this host", len(up)).
		Try("use -C %s, for example; orrery ls lists them", up[0].Site)
}

// originalsUp returns the sites that are up on this machine, without twins.
func originalsUp(c *Session) []register.Marker {
	return slices.DeleteFunc(c.Register().SitesUp(), func(m register.Marker) bool { return m.Twin != "" })
}

// named returns the directory that -C names. A word without a slash that is no directory is the name
// of a site that is up on this machine.
func named(c *Session) (string, error) {
	if _, err := os.Stat(c.SiteDir); err == nil || strings.Contains(c.SiteDir, "/") {
		return c.SiteDir, nil
	}
	var names []string
	for _, m := range originalsUp(c) {
		if m.Site == c.SiteDir {
			return existing(m)
		}
		names = append(names, m.Site)
	}
	p := problem.New(problem.Usage, "%q is neither a directory nor a site that is up on this host", c.SiteDir)
	if len(names) == 0 {
		return "", p.Try("orrery ls lists the sites of this host")
	}
	return "", p.Try("up on this host: %s", humanize.List(names, 8))
}

// existing returns the directory of a site that is up, or an error if it is gone.
func existing(m register.Marker) (string, error) {
	if m.Exists() {
		return m.Dir, nil
	}
	return "", problem.New(problem.Usage, "site %s is up on this host, but its directory is gone", m.Site).At(m.Dir).
		Try("orrery down --name %s takes it down; if the directory was moved, name it with -C", m.Site)
}

// Load reads the site directory and returns the site, or its twin if the session names one.
func (c *Session) Load() (*site.Site, error) {
	dir, err := c.Directory()
	if err != nil {
		return nil, err
	}
	s, err := sitefile.Load(dir)
	if err != nil || c.Twin == "" {
		return s, err
	}
	t, err := c.Connector(s).Twins().Find(context.Background(), c.Twin)
	c.Known.Remove(s.Name + "." + c.Twin)
	if err == nil {
		c.Known.Add(t.Record)
	} else if _, statErr := os.Stat(c.Register().TwinPath(s.Name + "." + c.Twin)); statErr != nil ||
		!problem.Is(err, problem.Mistake) {
		return nil, err // otherwise the record is on this machine, and AsTwin says why it cannot be read
	}
	return c.Register().AsTwin(s, c.Twin, 0)
}

// AbsDirectory returns the absolute path of the site directory.
func (c *Session) AbsDirectory() (string, error) {
	dir, err := c.Directory()
	if err != nil {
		return "", err
	}
	return filepath.Abs(dir)
}

// MarkUp records that a site was brought up on this machine.
func MarkUp(c *Session, s *site.Site) error {
	if !hosts.IncludesLocal(s) {
		return nil
	}
	dir, err := c.AbsDirectory()
	if err != nil {
		return err
	}
	if err := c.Register().MarkUp(s, dir); err != nil {
		return err
	}
	if err := c.Register().StoreDeclared(s, dir); err != nil {
		c.Notice(s.Key(), "no copy of the site directory was stored for the time when it has mistakes: %v", err)
	}
	return nil
}
