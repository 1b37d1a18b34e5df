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

// Releases are those of a site that the hosts of a fleet keep.
type Releases struct {
	call  *Call
	fleet *apply.Fleet
}

// Releases returns those that the hosts of a fleet keep of the site.
func (c *Call) Releases(f *apply.Fleet) Releases { return Releases{c, f} }

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
	return r.call.scope().keep(ctx, r.fleet, staged, number, who)
}

// Lock returns releases.lock of a site on which the hosts' copies are used only if they are in it.
// There is none if this machine is the only host.
func (r Releases) Lock() (*sitefile.Lock, error) { return r.call.scope().lock(r.fleet) }

// Store lets all hosts keep an edition that is in a directory of this machine. Its digest is in
// releases.lock before any host has it: a run that was cut short is done again.
func (r Releases) Store(ctx context.Context, number int, dir string) error {
	digest, err := sitearchive.Digest(dir)
	if err != nil {
		return err
	}
	if r.fleet.Lock, err = r.call.Lock().Vouch(number, digest); err != nil {
		return err
	}
	return r.fleet.Each(func(_ int, h *apply.Steered) error {
		return treesync.Pipe(ctx, func(rw io.ReadWriter) error { return sitearchive.Send(ctx, dir, rw) },
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

// Edition returns a directory with the copy that hosts keep of the site directory for a release:
// this machine's own, or one in dir to which it is copied.
func (r Releases) Edition(ctx context.Context, number int, dir string) (string, error) {
	return r.call.scope().edition(ctx, r.fleet, number, dir)
}

// Load returns the site as a release makes it that some host keeps, and that may be trusted.
func (r Releases) Load(ctx context.Context, number int) (*site.Site, error) {
	return r.call.scope().load(ctx, r.fleet, number)
}

// Vouch writes to releases.lock what this machine keeps of releases, before other hosts join it:
// only its root could have written that. What other hosts keep is left for the user to trust.
func (r Releases) Vouch(ctx context.Context) error { return r.call.scope().vouch(ctx) }

// Admit refuses releases from a backup that are not the ones in releases.lock of the site
// directory. If that directory is fresh, it came with the backup, and so did these releases: who
// trusts the one trusts the other. Digests is called if they are asked for.
func (r Releases) Admit(fresh bool, digests func() (map[int]string, error)) error {
	return r.call.scope().admit(fresh, digests)
}
