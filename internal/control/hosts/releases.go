package hosts

import (
	"context"
	"errors"
	"os"

	"orrery/internal/apply"
	"orrery/internal/control/register"
	"orrery/internal/edition"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// learn gives the hosts the releases that are live on them. What of one cannot be read is told by whoever needs it; it must not keep a site from being taken down.
func (c *Call) learn(ctx context.Context, f *apply.Fleet) error {
	r, err := f.ReadReleases()
	if err != nil {
		return err
	}
	if r.Switch != nil || r.Trial != nil {
		return problem.New(problem.Unable, "a switch of site %s is under way or was interrupted, or a release is on trial; that is not yet steered from here, or with several hosts", c.Site.Key()).
			Try("end it on the host itself: orrery up, orrery confirm or orrery rollback")
	}
	for _, n := range c.Site.Nodes {
		number, known := r.Active[n.Name]
		if !known || number == 0 || number == n.Release || f.Releases()[number] != nil {
			continue
		}
		s, err := c.release(ctx, f, number)
		var p *problem.Problem
		if errors.As(err, &p) && p.Kind == problem.Surprise {
			return err
		}
		if err != nil {
			c.Notice("release %d cannot be read: %v", number, err)
			continue
		}
		f.All[0].Has(number, s)
	}
	return nil
}

// release gives the site as a release makes it that some host keeps.
func (c *Call) release(ctx context.Context, f *apply.Fleet, number int) (*site.Site, error) {
	keeper, err := f.Keeper(ctx, number)
	if err != nil {
		return nil, err
	}
	if keeper == nil {
		return nil, problem.New(problem.Mistake, "release %d of site %s was not staged on any host that answers", number, c.Site.Key())
	}
	in, err := keeper.Edition(ctx, number)
	if err != nil {
		return nil, err
	}
	defer in.Close() //nolint:errcheck // it was only read
	dir, err := os.MkdirTemp("", "orrery-release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // all of it has been read
	if _, err := edition.Unpack(in, dir); err != nil {
		return nil, problem.New(problem.Failed, "the copy of the site directory of release %d on host %s cannot be read", number, keeper.Name).Because(err)
	}
	return register.Register{Dirs: c.Dirs}.ReleaseOf(c.Site, dir, c.Dir, number)
}
