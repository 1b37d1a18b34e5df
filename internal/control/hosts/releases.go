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

// Releases are those of a site that the hosts of a fleet keep.
type Releases struct {
	call  *Call
	fleet *apply.Fleet
}

// Releases returns those that the hosts of a fleet keep of the site.
func (c *Call) Releases(f *apply.Fleet) Releases { return Releases{c, f} }

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
		if _, err := c.Lock().Vouch(number, digest); err != nil {
			return err
		}
	}
	return nil
}

// LearnLive tells the hosts which releases are live on them. A release that cannot be read, or is not the one
// in releases.lock, is withheld: what needs it refuses, and all else goes on, such as taking the site down.
func (r Releases) LearnLive(ctx context.Context) error {
	kept, err := r.fleet.Records().Read(ctx)
	if err != nil {
		return err
	}
	r.fleet.Reached = &kept
	for _, number := range numbers(kept.Active) {
		err := r.learnOne(ctx, number)
		var p *problem.Problem
		if errors.As(err, &p) && p.Kind != problem.Surprise {
			r.call.Notice("%v", err)
			r.fleet.Views().Withhold(number, err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Learn tells the hosts of some releases of nodes, unless they know them already.
func (r Releases) Learn(ctx context.Context, of map[string]int) error {
	for _, number := range numbers(of) {
		if err := r.learnOne(ctx, number); err != nil {
			return err
		}
	}
	return nil
}

// numbers returns the numbers of the releases of some nodes, sorted.
func numbers(of map[string]int) []int { return slices.Compact(slices.Sorted(maps.Values(of))) }

func (r Releases) learnOne(ctx context.Context, number int) error {
	if number == 0 || r.fleet.Views().Releases()[number] != nil || r.fleet.Site().Stage == number {
		return nil
	}
	s, err := r.Load(ctx, number)
	if err == nil {
		r.fleet.Views().Add(number, s)
	}
	return err
}

// Keep lets all hosts keep the edition of a release that is staged from the site directory.
func (r Releases) Keep(ctx context.Context, staged *site.Site, number int, who string) error {
	if r.call.alone() {
		return register.Register{Dirs: r.call.Dirs, Known: r.call.Known}.KeepRelease(r.call.Site, staged, number, r.call.Dir, who)
	}
	dir, err := os.MkdirTemp("", "orrery-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the hosts have it
	here := register.Register{Dirs: host.Dirs{State: dir}, Known: r.call.Known}
	if err := here.KeepRelease(r.call.Site, staged, number, r.call.Dir, who); err != nil {
		return err
	}
	return r.Store(ctx, number, here.Dirs.Release(r.call.Site.Key(), number))
}

// Store lets all hosts keep an edition that is in a directory of this machine. Its digest is in releases.lock before any host has it: a run that was cut short is done again.
func (r Releases) Store(ctx context.Context, number int, dir string) error {
	digest, err := edition.Digest(dir)
	if err != nil {
		return err
	}
	if r.fleet.Lock, err = r.call.Lock().Vouch(number, digest); err != nil {
		return err
	}
	return r.fleet.Each(func(_ int, h *apply.Steered) error {
		return treesync.Pipe(ctx, func(rw io.ReadWriter) error { return edition.Send(ctx, dir, rw) },
			func(rw io.ReadWriter) error { return h.Releases.KeepEdition(ctx, number, digest, rw) })
	})
}

// Disown removes releases that no host keeps any more from releases.lock.
func (r Releases) Disown(ctx context.Context, releases []int) {
	all, err := r.fleet.Editions().Digests(ctx, releases...)
	if err != nil || len(r.fleet.Unknown) > 0 {
		return
	}
	gone := slices.DeleteFunc(slices.Clone(releases), func(number int) bool {
		return slices.ContainsFunc(all, func(kept map[int]string) bool { _, ok := kept[number]; return ok })
	})
	r.call.Lock().amend(func(lock *sitefile.Lock) { lock.Remove(r.call.Site.Twin, gone...) })
}

// Edition returns a directory with the copy that hosts keep of the site directory for a release: this machine's own, or one in dir
// to which it is copied.
func (r Releases) Edition(ctx context.Context, number int, dir string) (string, error) {
	if r.call.alone() {
		return r.call.Dirs.Release(r.call.Site.Key(), number), nil
	}
	at := filepath.Join(dir, strconv.Itoa(number))
	if err := os.Mkdir(at, 0o700); err != nil {
		return "", err
	}
	return at, r.fleet.Editions().Fetch(ctx, number, at)
}

// Load returns the site as a release makes it that some host keeps, and that is the one in releases.lock.
func (r Releases) Load(ctx context.Context, number int) (*site.Site, error) {
	own := register.Register{Dirs: r.call.Dirs, Known: r.call.Known}
	if r.call.alone() {
		return own.LoadRelease(r.call.Site, number)
	}
	dir, err := os.MkdirTemp("", "orrery-release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // all of it has been read
	if err := r.fleet.Editions().Fetch(ctx, number, dir); err != nil {
		return nil, err
	}
	made, err := own.ReleaseOf(r.call.Site, dir, r.call.Dir, number)
	if err != nil {
		return nil, err
	}
	for i := range made.Images {
		made.Images[i].Told = true
	}
	made.Secrets, made.Hooks = r.call.Site.Secrets, r.call.Site.Hooks // what this machine reads, runs and gives away is for its own site file to say, and not for a host
	return made, nil
}
