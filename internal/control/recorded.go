package control

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"orrery/internal/control/hosts"
	"orrery/internal/control/register"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/check"
	"orrery/internal/site/sitefile"
	"orrery/internal/text/humanize"
	"orrery/internal/text/sanitize"
)

// LoadRunning returns the site as Load does, for work with nodes that exist. If the site directory
// has mistakes or is missing, it returns the site as this host recorded it when the site was last
// brought up, and reports why.
func (c *Session) LoadRunning() (*site.Site, error) {
	s, err := c.Load()
	if err == nil {
		return s, nil
	}
	if original := *c; c.Twin != "" {
		original.Twin = ""
		if _, wrong := original.Load(); wrong == nil {
			return nil, err // the directory is right, and hosts disagree on the twin, for example
		}
	}
	s, ok := Recorded(c)
	if !ok {
		return nil, err
	}
	c.Notice(s.Key(), "%s; using what this host has recorded", firstProblem(err))
	return s, nil
}

// Recorded returns the site that the session selects as this host recorded it when the site was last
// brought up. It returns false if it is not up, or if the caller is not root, who alone can read the
// record.
func Recorded(c *Session) (*site.Site, bool) {
	m, ok := recordedSite(c)
	if !ok {
		return nil, false
	}
	s, err := c.Register().LoadDeclaration(m)
	if err != nil || s.Key() != m.Key() {
		return nil, false
	}
	return s, true
}

// firstProblem returns the first problem of an error and the number of the others, on one line and
// without cures.
func firstProblem(err error) string {
	all := problem.All(err)
	if len(all) == 0 {
		return problem.Truncate(sanitize.Line(err.Error()), 300)
	}
	first := *all[0]
	first.Cure = ""
	text := problem.Truncate(sanitize.Line(strings.TrimSpace(first.Error())), 300)
	if more := len(all) - 1; more > 0 {
		text += " (and " + humanize.Plural(more, "more mistake") + ")"
	}
	return text
}

// sitesUp returns the sites that are up on this machine, without twins.
func sitesUp(c *Session) []register.UpRecord {
	return slices.DeleteFunc(c.Register().SitesUp(), func(m register.UpRecord) bool { return m.Twin != "" })
}

// named returns the site that -C names instead of a directory, and the directory from which that
// site or its twin was brought up. It returns "" if -C names none. A directory with a site file
// takes precedence over a site of that name.
func named(c *Session) (name, dir string) {
	name = c.SiteDir
	switch {
	case c.Named != "":
		return c.Named, c.SiteDir
	case !check.ValidLabel(name), exists(filepath.Join(name, sitefile.Name)):
		return "", ""
	}
	if c.Twin != "" {
		for _, r := range c.Register().Twins() {
			if r.Site == name && r.Options.Name == c.Twin {
				return name, r.Dir
			}
		}
	}
	if m, up := c.Register().Up(name); up && m.Site == name && m.Twin == "" {
		return name, m.Dir
	}
	return "", ""
}

// recordedSite returns the site or twin that the session selects, if it is up on this machine. It
// does not read the site directory.
func recordedSite(c *Session) (m register.UpRecord, ok bool) {
	up := slices.DeleteFunc(c.Register().SitesUp(), func(m register.UpRecord) bool { return m.Twin != c.Twin })
	name, dir := named(c)
	if name == "" {
		dir = c.SiteDir
	}
	from := slices.DeleteFunc(slices.Clone(up), func(m register.UpRecord) bool {
		return name != "" && m.Site != name || !isSameDirectory(m.Dir, dir)
	})
	switch {
	case len(from) == 1:
		return from[0], true
	case len(from) == 0 && len(up) == 1 && c.SiteDir == "" && !exists(sitefile.Name):
		return up[0], true
	}
	return m, false
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// isSameDirectory reports whether a site was brought up from a directory, or from the current one if
// dir is "".
func isSameDirectory(from, dir string) bool {
	at, err := filepath.Abs(dir)
	if err != nil {
		return false
	}
	if at == filepath.Clean(from) {
		return true
	}
	a, wrong := os.Stat(at)
	b, err := os.Stat(from)
	return wrong == nil && err == nil && os.SameFile(a, b)
}

// explainMissing returns the error that -C names neither a directory nor a site that is up, if that
// is the cause of err. Otherwise it returns err.
func explainMissing(c *Session, dir string, err error) error {
	if !check.ValidLabel(c.SiteDir) || dir != c.SiteDir || exists(dir) {
		return err
	}
	var names []string
	for _, m := range sitesUp(c) {
		names = append(names, m.Site)
	}
	p := problem.New(problem.Mistake, "%s is neither a directory nor a site that is up on this host", dir)
	switch near := problem.Suggest(dir, names); {
	case near != "":
		return p.Try("did you mean %s?", near)
	case len(names) > 0:
		return p.Try("sites that are up: %s", humanize.List(names, 12))
	}
	return p.Try("orrery init %s writes one; orrery ls lists the sites of this host", dir)
}

// RefreshDeclaration records the site directory of a site that is up again, if it was edited without
// an effect on the hosts.
func RefreshDeclaration(c *Session, s *site.Site) error {
	if !hosts.IncludesLocal(s) {
		return nil
	}
	dir, err := c.AbsDirectory()
	if m, up := c.Register().Up(s.Key()); err != nil || !up || !isSameDirectory(m.Dir, dir) {
		return err
	}
	if !c.Register().IsDeclarationOutdated(s, dir) {
		return nil
	}
	return c.Register().StoreDeclaration(s.Key(), dir)
}
