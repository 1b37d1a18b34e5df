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

// UnderWay reports a trial, and a restore in progress, on hosts that were just reached. It returns
// an error if a switch is under way or was interrupted.
func (c *Call) UnderWay(ctx context.Context, f *apply.Fleet) error {
	r, err := f.Records().AsReached(ctx)
	if err != nil {
		return err
	}
	var restore *observe.Restoring
	var both sync.WaitGroup // ask a remote host both questions at once
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

// TellCutShort reports how to resume the restoring of a snapshot that was interrupted. Until then
// each volume has its old or its restored content. Each is complete, but nothing has verified that.
func (c *Call) TellCutShort(ctx context.Context, f *apply.Fleet) {
	id, nodes, err := apply.RestoringSnapshot(ctx, f)
	if err != nil {
		c.Notice("whether the restoring of a snapshot was cut short is not known: %v", err)
	} else if id != "" {
		c.Notice("the restoring of snapshot %s was cut short; to resume it: orrery snapshot restore %s %s", id, id,
			strings.Join(nodes, " "))
	}
}

// Interrupted returns an error if the records contain a switch that is under way or was
// interrupted.
func Interrupted(s *site.Site, r observe.Releases) error {
	if r.Switch == nil {
		return nil
	}
	return problem.New(problem.HalfWay,
		"a switch of %s to release %s is under way or was interrupted; the set may be at more than one release",
		r.Switch.Who, register.ReleaseNames(r.Switch.To)).At(s.Key()).
		Try("orrery up brings it to release %s", register.ReleaseNames(r.Switch.End))
}
