package control

import (
	"context"
	"os"
	"path/filepath"

	"orrery/internal/control/hosts"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
)

// Directory returns the site directory: the one given by -C, or that of the site which is up and has
// the name given by -C. Without -C it is the current directory, else that of the only site that is
// up on this machine.
func (c *Session) Directory() (string, error) {
	if _, dir := named(c); dir != "" {
		return dir, nil
	}
	if c.SiteDir != "" {
		return c.SiteDir, nil
	}
	if exists(sitefile.Name) {
		return ".", nil
	}
	if c.Twin != "" {
		r, err := OnlyTwin(c)
		return r.Dir, err
	}
	up := sitesUp(c)
	switch len(up) {
	case 1:
		if !up[0].Exists() {
			return "", problem.New(problem.Usage, "site %s is up on this host, but its directory is gone", up[0].Site).
				At(up[0].Dir).
				Try("orrery down --name %s takes it down; if the directory was moved, name it with -C", up[0].Site)
		}
		return up[0].Dir, nil
	case 0:
		return "", problem.New(problem.Usage, "no site: no site.toml in this directory").
			Try("use -C DIRECTORY, or create a site with orrery init; orrery ls lists the sites of this host")
	}
	return "", problem.New(problem.Usage, "no site selected: %d are up on this host", len(up)).
		Try("use -C %s, for example; orrery ls lists them", up[0].Site)
}

// Load reads the site directory and returns the site, or its twin if the session names one.
func (c *Session) Load() (*site.Site, error) {
	dir, err := c.Directory()
	if err != nil {
		return nil, err
	}
	s, err := sitefile.Load(dir)
	if err != nil {
		return nil, explainMissing(c, dir, err)
	}
	if name, _ := named(c); name != "" && name != s.Name {
		return nil, problem.New(problem.Mistake, "this directory now declares site %s and not %s", s.Name, name).
			At(filepath.Join(dir, sitefile.Name)).
			Try("restore the name of the site, or use -C %s for site %s", dir, s.Name)
	}
	if c.Twin == "" {
		return s, nil
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
	if err := c.Register().StoreDeclaration(s.Key(), dir); err != nil {
		return err
	}
	return c.Register().MarkUp(s, dir)
}
