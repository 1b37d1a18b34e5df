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

// ReportPending reports a trial, and a restore in progress, on hosts that were just reached. It returns
// an error if a switch is under way or was interrupted.
func (c *Connector) ReportPending(ctx context.Context, f *apply.Fleet) error {
	r, err := f.Records().AtConnect(ctx)
	if err != nil {
		return err
	}
	var restore *observe.RestoreProgress
	var both sync.WaitGroup // ask a remote host both questions at once
	both.Go(func() {
		if part, err := apply.InterruptedRestore(ctx, f); err == nil {
			restore = part
		}
	})
	both.Go(func() { c.ReportInterruptedRestore(ctx, f) })
	both.Wait()
	if restore != nil {
		how := "orrery up"
		if !restore.Going {
			how = "orrery restore " + restore.From
		}
		c.Notice("a restore of %s is under way or was interrupted; to complete it: %s", c.Site.Key(), how)
	}
	if err := c.ReportTrial(ctx, f, r); err != nil {
		return err
	}
	return CheckInterrupted(c.Site, r)
}

// ReportInterruptedRestore reports how to resume the restoring of a snapshot that was interrupted. Until then
// each volume has its old or its restored content. Each is complete, but nothing has verified that.
func (c *Connector) ReportInterruptedRestore(ctx context.Context, f *apply.Fleet) {
	id, nodes, err := apply.RestoringSnapshot(ctx, f)
	if err != nil {
		c.Notice("cannot check for an interrupted snapshot restore: %v", err)
	} else if id != "" {
		c.Notice("the restore of snapshot %s was interrupted; to resume it: orrery snapshot restore %s %s", id, id,
			strings.Join(nodes, " "))
	}
}

// CheckInterrupted returns an error if the records contain a switch that is under way or was
// interrupted.
func CheckInterrupted(s *site.Site, r observe.Releases) error {
	if r.Switch == nil {
		return nil
	}
	return problem.New(problem.HalfWay,
		"a switch by %s to release %s is under way or was interrupted; the set may be at more than one release",
		r.Switch.Who, register.ReleaseNames(r.Switch.To)).At(s.Key()).
		Try("orrery up brings it to release %s", register.ReleaseNames(r.Switch.End))
}
