package control

import (
	"context"
	"strings"

	"orrery/internal/apply"
	"orrery/internal/control/hosts"
	"orrery/internal/control/register"
	"orrery/internal/phrase"
	"orrery/internal/site"
)

// UnderWay tells of a trial, of the end of a twin, and of a snapshot that was being put back. A switch that is under way, or was interrupted, is the error.
func (c *Session) UnderWay(s *site.Site) error {
	if hosts.Far(s) {
		f, _, err := c.Reached(context.Background(), s)
		if err != nil {
			return err
		}
		r, err := f.ReadReleases()
		if err != nil {
			return err
		}
		c.tellCutShort(context.Background(), s, f)
		if r, err := f.Restores(context.Background()); err == nil && r != nil {
			c.notice(s.Key(), "a restore of %s is under way or was interrupted; to bring it to its end: orrery restore %s", s.Key(), r.From)
		}
		if err := c.Call(s).TellTrial(f, r); err != nil {
			return err
		}
		return hosts.Interrupted(s, r)
	}
	h, err := c.Bare(s)
	if err != nil {
		return err
	}
	r, err := h.ReadReleases()
	if err != nil {
		return err
	}
	c.tellCutShort(context.Background(), s, apply.Alone(h))
	switch {
	case r.Trial == nil:
	case c.watched(s) && r.Trial.ByHand:
		c.notice(s.Key(), "release %d is on trial until %s; unless it is confirmed by then (orrery confirm), it goes back to release %s",
			r.Trial.Release, phrase.Clock(r.Trial.Until), register.ReleaseNames(r.Trial.Back))
	case c.watched(s):
		c.notice(s.Key(), "release %d is on trial until %s; then it is confirmed or goes back to release %s",
			r.Trial.Release, phrase.Clock(r.Trial.Until), register.ReleaseNames(r.Trial.Back))
	default:
		c.notice(s.Key(), "release %d is on trial until %s, but nobody watches over it: the process that did has ended (orrery resume, and whatever changes the site, sees to it)",
			r.Trial.Release, phrase.Clock(r.Trial.Until))
	}
	if twin, so := c.Forgotten(s.Key()); so {
		c.notice(s.Key(), "twin %s is to end at %s, but the process that waited for that has ended (orrery resume, and whatever changes a site here, sees to it)",
			s.Twin, phrase.Clock(twin.Expires))
	}
	return hosts.Interrupted(s, r)
}

// tellCutShort says how a restoring is resumed that was cut short: what is in place then may be of before or of then, and is whole, but nothing has proven it.
func (c *Session) tellCutShort(ctx context.Context, s *site.Site, f *apply.Fleet) {
	if id, nodes, err := f.Restoring(ctx); err == nil && id != "" {
		c.notice(s.Key(), "the restoring of snapshot %s was cut short; to resume it: orrery snapshot restore %s %s", id, id, strings.Join(nodes, " "))
	}
}
