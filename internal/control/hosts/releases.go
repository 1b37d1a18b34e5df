package hosts

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"orrery/internal/apply"
	"orrery/internal/control/register"
	"orrery/internal/edition"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
	"orrery/internal/treesync"
)

// LearnLive tells the hosts which releases are live on them. A release that cannot be read, or is not the one
// in releases.lock, is withheld: what needs it refuses, and all else goes on, such as taking the site down.
func (c *Call) LearnLive(ctx context.Context, f *apply.Fleet) error {
	r, err := f.Records().Read(ctx)
	if err != nil {
		return err
	}
	f.Reached = &r
	for _, number := range numbers(r.Active) {
		err := c.learnOne(ctx, f, number)
		var p *problem.Problem
		if errors.As(err, &p) && p.Kind != problem.Surprise {
			c.Notice("%v", err)
			f.Views().Withhold(number, err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Learn tells the hosts of some releases of nodes, unless they know them already.
func (c *Call) Learn(ctx context.Context, f *apply.Fleet, of map[string]int) error {
	for _, number := range numbers(of) {
		if err := c.learnOne(ctx, f, number); err != nil {
			return err
		}
	}
	return nil
}

// numbers returns the numbers of the releases of some nodes, sorted.
func numbers(of map[string]int) []int { return slices.Compact(slices.Sorted(maps.Values(of))) }

func (c *Call) learnOne(ctx context.Context, f *apply.Fleet, number int) error {
	if number == 0 || f.Views().Releases()[number] != nil || f.Site().Stage == number {
		return nil
	}
	s, err := c.Release(ctx, f, number)
	if err == nil {
		f.Views().Add(number, s)
	}
	return err
}

// Keep lets all hosts keep the edition of a release that is staged from the site directory.
func (c *Call) Keep(ctx context.Context, f *apply.Fleet, staged *site.Site, number int, who string) error {
	if c.alone() {
		return register.Register{Dirs: c.Dirs, Known: c.Known}.KeepRelease(c.Site, staged, number, c.Dir, who)
	}
	dir, err := os.MkdirTemp("", "orrery-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the hosts have it
	here := register.Register{Dirs: host.Dirs{State: dir}, Known: c.Known}
	if err := here.KeepRelease(c.Site, staged, number, c.Dir, who); err != nil {
		return err
	}
	return c.Store(ctx, f, number, here.Dirs.Release(c.Site.Key(), number))
}

// Store lets all hosts keep an edition that is in a directory of this machine. Its digest is in releases.lock before any host has it: a run that was cut short is done again.
func (c *Call) Store(ctx context.Context, f *apply.Fleet, number int, dir string) error {
	digest, err := edition.Digest(dir)
	if err != nil {
		return err
	}
	if f.Lock, err = c.Vouch(number, digest); err != nil {
		return err
	}
	return f.Each(func(_ int, h *apply.Steered) error {
		return treesync.Pipe(ctx, func(rw io.ReadWriter) error { return edition.Send(ctx, dir, rw) },
			func(rw io.ReadWriter) error { return h.Releases.KeepEdition(ctx, number, digest, rw) })
	})
}

// Vouch writes to releases.lock that the edition of a release has this digest.
func (c *Call) Vouch(number int, digest string) (*sitefile.Lock, error) {
	lock, err := c.lock()
	if err != nil || lock.Digest(c.Site.Twin, number) == digest {
		return lock, err
	}
	lock.Set(c.Site.Twin, number, digest)
	if err := lock.Write(); err != nil {
		return nil, err
	}
	c.Notice("%s has a new digest for release %d: commit the file, so that other control hosts get it", sitefile.LockName, number)
	return lock, nil
}

// VouchOwn writes to releases.lock what this machine keeps of releases, if it is the only host of the site: nobody but its root
// could write to that.
func (c *Call) VouchOwn(ctx context.Context) error {
	if !c.alone() {
		return nil
	}
	f, err := c.here()
	if err != nil {
		return err
	}
	r, err := f.Records().Read(ctx)
	if err != nil {
		return err
	}
	for _, number := range r.Staged {
		digest, err := edition.Digest(c.Dirs.Release(c.Site.Key(), number))
		if err != nil { // with the files of images, it may be too large for other hosts
			c.Notice("what this machine keeps of release %d is not for other hosts: %v", number, err)
			continue
		}
		if _, err := c.Vouch(number, digest); err != nil {
			return err
		}
	}
	return nil
}

// Disown removes releases that no host keeps any more from releases.lock.
func (c *Call) Disown(ctx context.Context, f *apply.Fleet, releases []int) {
	all, err := f.Editions().Digests(ctx, releases...)
	if err != nil || len(f.Unknown) > 0 {
		return
	}
	gone := slices.DeleteFunc(slices.Clone(releases), func(number int) bool {
		return slices.ContainsFunc(all, func(kept map[int]string) bool { _, ok := kept[number]; return ok })
	})
	c.amend(func(lock *sitefile.Lock) { lock.Remove(c.Site.Twin, gone...) })
}

// DisownTwin removes the releases of a twin that is gone from releases.lock.
func (c *Call) DisownTwin(name string) {
	c.amend(func(lock *sitefile.Lock) { lock.RemoveTwin(name) })
}

// amend removes lines from releases.lock. If they stay, they are of no harm.
func (c *Call) amend(remove func(*sitefile.Lock)) {
	lock, err := c.lock()
	if err == nil {
		remove(lock)
		err = lock.Write()
	}
	if err != nil {
		c.Notice("%v", err)
	}
}

// lock reads releases.lock of the site directory.
func (c *Call) lock() (*sitefile.Lock, error) {
	if c.Dir == "" {
		return nil, problem.New(problem.Usage, "there is no site directory, and so no %s", sitefile.LockName).Try("-C names the site directory")
	}
	return sitefile.ReadLock(c.Dir)
}

// Edition returns a directory with the copy that hosts keep of the site directory for a release: this machine's own, or one in dir
// to which it is copied.
func (c *Call) Edition(ctx context.Context, f *apply.Fleet, number int, dir string) (string, error) {
	if c.alone() {
		return c.Dirs.Release(c.Site.Key(), number), nil
	}
	at := filepath.Join(dir, strconv.Itoa(number))
	if err := os.Mkdir(at, 0o700); err != nil {
		return "", err
	}
	return at, f.Editions().Fetch(ctx, number, at)
}

// Release returns the site as a release makes it that some host keeps, and that is the one in releases.lock.
func (c *Call) Release(ctx context.Context, f *apply.Fleet, number int) (*site.Site, error) {
	own := register.Register{Dirs: c.Dirs, Known: c.Known}
	if c.alone() {
		return own.LoadRelease(c.Site, number)
	}
	dir, err := os.MkdirTemp("", "orrery-release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // all of it has been read
	if err := f.Editions().Fetch(ctx, number, dir); err != nil {
		return nil, err
	}
	made, err := own.ReleaseOf(c.Site, dir, c.Dir, number)
	if err != nil {
		return nil, err
	}
	for i := range made.Images {
		made.Images[i].Told = true
	}
	made.Secrets, made.Hooks = c.Site.Secrets, c.Site.Hooks // what this machine reads, runs and gives away is for its own site file to say, and not for a host
	return made, nil
}
