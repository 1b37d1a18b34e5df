package hosts

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"

	"orrery/internal/apply"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
	"orrery/internal/treesync"
	"orrery/internal/treesync/sitearchive"
)

// Releases are the releases of a site that the hosts of a fleet store.
type Releases struct {
	call  *Connector
	fleet *apply.Fleet
}

// Releases returns the releases of the site that the hosts of a fleet store.
func (c *Connector) Releases(f *apply.Fleet) Releases { return Releases{c, f} }

// LoadLive tells the hosts which releases are live on them. It withholds a release that cannot be
// read, or that differs from releases.lock. Steps that need such a release fail, and all others
// work, such as taking the site down.
func (r Releases) LoadLive(ctx context.Context) error {
	kept, err := r.fleet.Records().Read(ctx)
	if err != nil {
		return err
	}
	r.fleet.Reached = &kept
	for _, number := range numbers(kept.Active) {
		err := r.loadOne(ctx, number)
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

// LoadReleases loads the releases in of, a map from nodes to releases, for the hosts, unless they know
// them already.
func (r Releases) LoadReleases(ctx context.Context, of map[string]int) error {
	for _, number := range numbers(of) {
		if err := r.loadOne(ctx, number); err != nil {
			return err
		}
	}
	return nil
}

// numbers returns the sorted numbers of the releases in of, without duplicates.
func numbers(of map[string]int) []int { return slices.Compact(slices.Sorted(maps.Values(of))) }

func (r Releases) loadOne(ctx context.Context, number int) error {
	if number == 0 || r.fleet.Views().Releases()[number] != nil || r.fleet.Site().Stage == number {
		return nil
	}
	s, err := r.Load(ctx, number)
	if err == nil {
		r.fleet.Views().Add(number, s)
	}
	return err
}

// StoreStaged makes all hosts store the edition of a release that is staged from the site directory.
func (r Releases) StoreStaged(ctx context.Context, staged *site.Site, number int, who string) error {
	return r.call.scope().storeStaged(ctx, r.fleet, staged, number, who)
}

// Lock returns releases.lock. The hosts' copies of releases are used only if they are listed in it.
// It returns an error if this machine is the only host, since such a site has no releases.lock.
func (r Releases) Lock() (*sitefile.Lock, error) { return r.call.scope().lock(r.fleet) }

// Store makes all hosts store an edition from a directory of this machine. Its digest is in
// releases.lock before any host has the edition, so an interrupted run can be repeated.
func (r Releases) Store(ctx context.Context, number int, dir string) error {
	digest, err := sitearchive.Digest(dir)
	if err != nil {
		return err
	}
	if r.fleet.Lock, err = r.call.Lock().Vouch(number, digest); err != nil {
		return err
	}
	return r.fleet.ForEach(func(_ int, h *apply.HostClient) error {
		return treesync.Pipe(ctx, func(rw io.ReadWriter) error { return sitearchive.Send(ctx, dir, rw) },
			func(rw io.ReadWriter) error { return h.Releases.KeepEdition(ctx, number, digest, rw) })
	})
}

// RemoveFromLock removes releases that no host stores any more from releases.lock.
func (r Releases) RemoveFromLock(ctx context.Context, releases []int) {
	all, err := r.fleet.Editions().Digests(ctx, releases...)
	if err != nil || len(r.fleet.Unknown) > 0 {
		return
	}
	gone := slices.DeleteFunc(slices.Clone(releases), func(number int) bool {
		return slices.ContainsFunc(all, func(kept map[int]string) bool { _, ok := kept[number]; return ok })
	})
	r.call.Lock().removeLines(func(lock *sitefile.Lock) { lock.Remove(r.call.Site.Twin, gone...) })
}

// Edition returns a directory with the stored copy of the site directory for a release. It is this
// machine's own copy, or one in dir to which a host's copy was fetched.
func (r Releases) Edition(ctx context.Context, number int, dir string) (string, error) {
	return r.call.scope().edition(ctx, r.fleet, number, dir)
}

// Load returns the site as defined by a release that some host stores, if that copy is trusted.
func (r Releases) Load(ctx context.Context, number int) (*site.Site, error) {
	return r.call.scope().load(ctx, r.fleet, number)
}

// Vouch adds the releases that this machine stores to releases.lock, before other hosts join the
// site. Only root of this machine could have written them. For releases from other hosts the user
// decides (orrery release trust).
func (r Releases) Vouch(ctx context.Context) error { return r.call.scope().vouch(ctx) }

// Admit returns a Refused problem if releases from a backup differ from those in releases.lock of
// the site directory. If that directory is fresh, it came with the same backup as the releases, so
// both are equally trusted. Digests is called if they are needed.
func (r Releases) Admit(fresh bool, digests func() (map[int]string, error)) error {
	return r.call.scope().admit(fresh, digests)
}
