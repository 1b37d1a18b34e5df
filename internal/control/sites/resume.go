package sites

import (
	"context"
	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/register"
	"orrery/internal/problem"
	"orrery/internal/site"
	"path/filepath"
)

// ResumeSite brings up a site that was up before a reboot. It returns the site as far as it could
// be read.
func ResumeSite(ctx context.Context, c *control.Session, m register.UpRecord) (*site.Site, *apply.Result, error) {
	b := c.WithoutOverdue()
	b.SiteDir, b.Twin, b.Force = m.Dir, m.Twin, true
	var r *apply.Result
	s, err := b.Load()
	if err == nil {
		r, err = up(ctx, b, s, nil, UpOptions{})
	}
	if err != nil {
		c.Trouble(m.Key(), err)
		err = problem.New(problem.Failed, "site %s was not brought up", m.Key()).At(filepath.Join(m.Dir, "site.toml"))
	}
	return s, r, err
}
