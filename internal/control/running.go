package control

import (
	"errors"
	"path/filepath"

	"orrery/internal/control/register"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
	"orrery/internal/text/sanitize"
)

// LoadRunning is like Load, for operations on running nodes that need no declaration. If the site
// directory has mistakes or is gone, it returns the site as it was last brought up on this machine,
// and reports that.
func LoadRunning(c *Session) (*site.Site, error) {
	s, err := c.Load()
	if err == nil {
		return s, nil
	}
	m, ok := markerUp(c)
	if !ok {
		return nil, err
	}
	kept, keptErr := c.Register().Declared(m)
	if keptErr != nil {
		return nil, err
	}
	c.Notice(m.Key(), "%s; using the site as it was last brought up", firstMistake(err))
	return kept, nil
}

// markerUp returns the record of the selected site or twin, if it is up on this machine.
func markerUp(c *Session) (m register.Marker, ok bool) {
	dir, err := c.Directory()
	if err == nil {
		if dir, err = filepath.Abs(dir); err != nil {
			return m, false
		}
	}
	var found []register.Marker
	for _, m := range c.Register().SitesUp() {
		if m.Twin == c.Twin && (dir != "" && m.Dir == dir || dir == "" && (c.SiteDir == "" || c.SiteDir == m.Site)) {
			found = append(found, m)
		}
	}
	if len(found) != 1 {
		return m, false
	}
	return found[0], true
}

// firstMistake returns the first of the mistakes in a site directory as one line without its cure,
// and how many more there are.
func firstMistake(err error) string {
	var all problem.List
	var first *problem.Problem
	switch {
	case errors.As(err, &all) && len(all) > 0:
		first = all[0]
	case !errors.As(err, &first):
		return sanitize.Line(err.Error())
	}
	short := *first
	short.Cure = ""
	text := sanitize.Line(short.Error())
	if len(all) > 1 {
		text += " (and " + humanize.Plural(len(all)-1, "more mistake") + ")"
	}
	return text
}
