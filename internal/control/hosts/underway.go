package hosts

import (
	"context"
	"strings"
	"sync"

	"orrery/internal/apply"
	"orrery/internal/control/register"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// UnderWay tells of a trial, and of what was being put back, on hosts that were reached just now. A
// switch that is under way, or was interrupted, is the error.
func (c *Call) UnderWay(ctx context.Context, f *apply.Fleet) error {
	r, err := f.Records().AsReached(ctx)
	if err != nil {
		return err
	}
	var restore *observe.Restoring
	var both sync.WaitGroup // a host that is far away is asked both at once
	both.Go(func() {
		if part, err := apply.InterruptedRestore(ctx, f); err == nil {
			restore = part
		}
	})
	both.Go(func() { c.TellCutShort(ctx, f) })
	both.Wait()
	if restore != nil {
		how := "orrery up"
		if !restore.Going {
			how = "orrery restore " + restore.From
		}
		c.Notice("a restore of %s is under way or was interrupted; to bring it to its end: %s", c.Site.Key(), how)
	}
	if err := c.TellTrial(ctx, f, r); err != nil {
		return err
	}
	return Interrupted(c.Site, r)
}

// TellCutShort tells how the restoring of a snapshot is resumed that was cut short: what is in
// place then may be of before or of then, and is whole, but nothing has proven it.
func (c *Call) TellCutShort(ctx context.Context, f *apply.Fleet) {
	id, nodes, err := apply.RestoringSnapshot(ctx, f)
	if err != nil {
		c.Notice("whether the restoring of a snapshot was cut short is not known: %v", err)
	} else if id != "" {
		c.Notice("the restoring of snapshot %s was cut short; to resume it: orrery snapshot restore %s %s", id, id,
			strings.Join(nodes, " "))
	}
}

// Interrupted returns the error that a switch is under way, or was interrupted, if there is one on record.
func Interrupted(s *site.Site, r observe.Releases) error {
	if r.Switch == nil {
		return nil
	}
	return problem.New(problem.HalfWay,
		"a switch of %s to release %s is under way or was interrupted; the set may be at more than one release",
		r.Switch.Who, register.ReleaseNames(r.Switch.To)).At(s.Key()).
		Try("orrery up brings it to release %s", register.ReleaseNames(r.Switch.End))
}
