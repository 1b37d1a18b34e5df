package hosts

import (
	"context"
	"errors"
	"io"
	"os"

	"orrery/internal/apply"
	"orrery/internal/control/register"
	"orrery/internal/edition"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// learn gives the hosts the releases that are live on them. What of one cannot be read is told by whoever needs it; it must not keep a site from being taken down.
func (c *Call) learn(ctx context.Context, f *apply.Fleet) error {
	r, err := f.ReadReleases(ctx)
	if err != nil {
		return err
	}
	f.Reached = &r
	err = c.Learn(ctx, f, r.Active)
	var p *problem.Problem
	if errors.As(err, &p) && p.Kind != problem.Surprise {
		c.Notice("%v", err)
		return nil
	}
	return err
}

// Learn gives the hosts some releases of nodes, if they have not got them yet.
func (c *Call) Learn(ctx context.Context, f *apply.Fleet, of map[string]int) error {
	for _, number := range of {
		if number == 0 || f.Releases()[number] != nil || f.All[0].Site.Stage == number {
			continue
		}
		s, err := c.Release(ctx, f, number)
		if err != nil {
			return err
		}
		f.All[0].Has(number, s)
	}
	return nil
}

// Keep lets all hosts keep the edition of a release that is staged from the site directory.
func (c *Call) Keep(ctx context.Context, f *apply.Fleet, staged *site.Site, number int, who string) error {
	dir, err := os.MkdirTemp("", "orrery-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the hosts have it
	here := register.Register{Dirs: host.Dirs{State: dir}, Far: c.Twins}
	if err := here.KeepRelease(c.Site, staged, number, c.Dir, who); err != nil {
		return err
	}
	return f.Each(func(_ int, h *apply.Steered) error {
		out, in := io.Pipe()
		go func() { in.CloseWithError(edition.Pack(ctx, here.Dirs.Release(c.Site.Key(), number), in)) }()
		defer out.Close() //nolint:errcheck // all of it was read, or nobody wants it
		return h.KeepEdition(ctx, number, out)
	})
}

// Release gives the site as a release makes it that some host keeps.
func (c *Call) Release(ctx context.Context, f *apply.Fleet, number int) (*site.Site, error) {
	dir, err := os.MkdirTemp("", "orrery-release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // all of it has been read
	if err := c.Edition(ctx, f, number, dir); err != nil {
		return nil, err
	}
	made, err := register.Register{Dirs: c.Dirs, Far: c.Twins}.ReleaseOf(c.Site, dir, c.Dir, number)
	if err != nil {
		return nil, err
	}
	for i := range made.Images {
		made.Images[i].Told = true
	}
	made.Secrets, made.Hooks = c.Site.Secrets, c.Site.Hooks // what this machine reads, runs and gives away is for its own site file to say, and not for a host
	return made, nil
}

// Edition lays down in a directory what a host keeps of a release, if all that keep it have the same.
func (c *Call) Edition(ctx context.Context, f *apply.Fleet, number int, dir string) error {
	keeper, digest, err := f.Keeper(ctx, number)
	if err != nil {
		return err
	}
	if keeper == nil {
		return problem.New(problem.Mistake, "release %d of site %s was not staged on any host that answers", number, c.Site.Key()).
			Try("orrery stage --release %d, or bring back the host that has it", number)
	}
	in, err := keeper.Edition(ctx, number)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it was only read
	is, err := edition.Unpack(in, dir)
	if err != nil {
		return problem.New(problem.Failed, "the copy of the site directory of release %d on host %s cannot be read", number, keeper.Name).Because(err).
			Try("stage the release again under another number")
	}
	if is != digest {
		return apply.OtherEdition(keeper.Name, number)
	}
	return nil
}
