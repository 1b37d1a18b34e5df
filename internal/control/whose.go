package control

import (
	"slices"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/twin"
)

// OnlyTwin returns the twin that the session names, if exactly one site has a twin of that name.
func OnlyTwin(c *Session) (r twin.Record, err error) {
	found := slices.DeleteFunc(c.Register().Twins(), func(r twin.Record) bool { return r.Options.Name != c.Twin })
	switch len(found) {
	case 0:
		return r, c.Register().NoTwinError("", c.Twin)
	case 1:
		return found[0], nil
	}
	var keys []string
	for _, r := range found {
		keys = append(keys, r.Key())
	}
	return r, problem.New(problem.Usage, "%d sites have a twin called %s: %s", len(found), c.Twin,
		strings.Join(keys, ", ")).
		Try("use -C with the directory of the site, such as %s", found[0].Dir)
}

// MayChange returns a Refused problem if the site is a twin that belongs to another user.
func (c *Session) MayChange(s *site.Site) error {
	if s.Twin == "" || c.Force {
		return nil
	}
	r, err := c.Register().ReadTwin(s.Key())
	if err != nil || r.Options.Owner == UserName() {
		return nil
	}
	return problem.New(problem.Refused, "twin %s belongs to %s; nothing was done", s.Twin, r.Options.Owner).
		Try("ask them, or use --force")
}
