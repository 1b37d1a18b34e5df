package sites

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"orrery/internal/control"
	"orrery/internal/control/secrets"
	"orrery/internal/problem"
	"orrery/internal/secret"
	"orrery/internal/text/humanize"
)

// Forget removes what this host still keeps of a site that was taken down: SSH host keys, generated
// secrets, kept releases, logs and the journal. It returns an error if the site is up, or if volumes,
// snapshots or twins of it are left. It needs no site directory.
func Forget(ctx context.Context, c *control.Session, name string) error {
	if err := c.Allowed(); err != nil {
		return err
	}
	s, err := siteByName(c, name)
	if err != nil {
		return err
	}
	if s.Twin != "" {
		return problem.New(problem.Usage, "%s is a twin", s.Key()).Try("orrery twin destroy %s", s.Twin)
	}
	if err := checkForgettable(c, name); err != nil {
		return err
	}
	f, err := c.HostsWithoutReleases(ctx, s)
	if err != nil {
		return err
	}
	why := "The SSH host keys, generated secrets, releases, logs and journal of " + name + " would be deleted permanently."
	if _, err := c.Confirmer.Ask(control.Question{About: control.Forget, Site: name, Why: why}); err != nil {
		return err
	}
	letGo, err := c.LockSite(ctx, s, f)
	if err != nil {
		return err
	}
	defer letGo()
	if err := checkForgettable(c, name); err != nil { // again, because the answer may have taken long
		return err
	}
	for _, h := range f.All {
		if _, err := h.State.Forget(ctx); err != nil {
			return err
		}
	}
	// these are on this control host, which need not be a host of the site
	for _, path := range []string{secrets.FilesPath(c.Dirs, s.Key()), secret.AuthorityPath(c.Dirs, s.Key())} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// checkForgettable returns an error if a site is up on this host, or has twins.
func checkForgettable(c *control.Session, name string) error {
	if _, up := c.Register().Up(name); up {
		return problem.New(problem.Refused, "site %s is up on this host; nothing was done", name).
			Try("orrery down --name %s takes it down", name)
	}
	var twins []string
	of, _ := filepath.Glob(c.Dirs.Site(name + ".*"))
	for _, dir := range of {
		twins = append(twins, strings.TrimPrefix(filepath.Base(dir), name+"."))
	}
	if len(twins) > 0 {
		return problem.New(problem.Refused, "site %s has %s: %s; nothing was done", name,
			humanize.Plural(len(twins), "twin"), humanize.List(twins, 12)).
			Try("orrery twin destroy %s", twins[0])
	}
	return nil
}
