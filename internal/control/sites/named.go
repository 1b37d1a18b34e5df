package sites

import (
	"os"
	"path/filepath"

	"orrery/internal/control"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/check"
)

// siteByName returns what is known of a site without its directory. It assumes that the site is in
// production, since that is unknown. A twin is not.
func siteByName(c *control.Session, name string) (*site.Site, error) {
	s := &site.Site{Name: name, Twin: c.Twin, Production: c.Twin == ""}
	if _, err := os.Stat(c.Dirs.Site(s.Key())); err != nil || !check.ValidLabel(name) || c.Twin != "" &&
		!check.ValidLabel(c.Twin) {
		all, _ := filepath.Glob(c.Dirs.Site("[^.]*"))
		for i := range all {
			all[i] = filepath.Base(all[i])
		}
		p := problem.New(problem.Usage, "this host has no site %q", s.Key()).At(c.Dirs.Site(""))
		if near := problem.Suggest(s.Key(), all); near != "" {
			return nil, p.Try("did you mean %s?", near)
		}
		return nil, p.Try("orrery ls lists the sites")
	}
	if m, ok := c.Register().Up(s.Key()); ok && m.Production != nil {
		s.Production = *m.Production
	}
	return s, nil
}
