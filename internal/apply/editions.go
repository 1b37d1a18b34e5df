package apply

import (
	"context"

	"orrery/internal/observe"
	"orrery/internal/problem"
)

// Names gives the names of the hosts.
func (f *Fleet) Names() (names []string) {
	for _, h := range f.All {
		names = append(names, h.Name)
	}
	return names
}

// recorded gives what each host has on record of releases.
func (f *Fleet) recorded(ctx context.Context) ([]observe.Releases, error) {
	all := make([]observe.Releases, len(f.All))
	return all, f.Each(func(i int, h *Steered) (err error) {
		all[i], err = h.ReadReleases(ctx)
		return err
	})
}

// records gives what each host has on record of releases, and whose is the newest.
func (f *Fleet) records(ctx context.Context) (all []observe.Releases, newest int, behind []int, err error) {
	if all, err = f.recorded(ctx); err != nil {
		return nil, 0, nil, err
	}
	if agreed, apart := observe.Apart(all); apart {
		for i := range all {
			agreed.Staged = all[i].Staged
			all[i] = agreed
		}
		return all, 0, nil, nil
	}
	newest, behind, err = observe.Newest(f.Names(), all)
	return all, newest, behind, err
}

// rejoin lets hosts that have ended a trial apart from one another have on record that the set is to be brought to one release.
func (f *Fleet) rejoin(ctx context.Context) error {
	all, err := f.recorded(ctx)
	if err != nil {
		return err
	}
	if agreed, apart := observe.Apart(all); apart {
		return f.WriteReleases(agreed)
	}
	return nil
}

// ReadReleases tells which releases are live, as the host has it on record that knows most of it. That hosts disagree is an error.
func (f *Fleet) ReadReleases(ctx context.Context) (observe.Releases, error) {
	all, newest, _, err := f.records(ctx)
	if err != nil {
		return observe.Releases{}, err
	}
	return all[newest], nil
}

// WriteReleases takes down on all hosts which releases are live. The record has one name, which comes after whatever each of them has: should one be lost before it has got it, the others know what it has.
func (f *Fleet) WriteReleases(r observe.Releases) error {
	if len(f.All) == 1 {
		return f.All[0].WriteReleases(r)
	}
	all, err := f.recorded(context.Background())
	if err != nil {
		return err
	}
	r = r.After(observe.Merged(all))
	return f.Each(func(_ int, h *Steered) error {
		h.forgetLive()
		defer h.forgetLive()
		return h.CopyReleases(r)
	})
}

// agree lets hosts that were observed have the newest record of releases, as they will before anything is done.
func (f *Fleet) agree(hosts []observe.Host) error {
	if len(f.All) < 2 {
		return nil
	}
	all := make([]observe.Releases, len(f.All))
	for i := range all {
		all[i] = hosts[i].Releases
	}
	if agreed, apart := observe.Apart(all); apart {
		for i := range all {
			agreed.Staged = all[i].Staged
			hosts[i].Releases = agreed
		}
		return nil
	}
	newest, behind, err := observe.Newest(f.Names(), all)
	for _, i := range behind {
		hosts[i].Releases = all[newest]
		hosts[i].Releases.Staged = all[i].Staged
	}
	return err
}

// CatchUp lets hosts that are behind have the newest record of releases, and all hosts what those were staged from that are live or were before. Only the holder of the lock may call it. It gives
// the names of the hosts that were behind. That a host has not got the latter is what is left; it stops nobody, as another has it.
func (f *Fleet) CatchUp(ctx context.Context) (late []string, left, err error) {
	if len(f.All) < 2 {
		return nil, nil, nil
	}
	if err := f.rejoin(ctx); err != nil {
		return nil, nil, err
	}
	all, newest, behind, err := f.records(ctx)
	if err != nil {
		return nil, nil, err
	}
	left = f.spread(ctx, all[newest].Needed())
	for _, i := range behind {
		if err := f.All[i].CopyReleases(all[newest]); err != nil {
			return late, left, err
		}
		f.All[i].forgetLive()
		late = append(late, f.All[i].Name)
	}
	return late, left, nil
}

// Keeper gives a host that keeps the edition of a release, and the digest on which all that do agree. That they keep different ones is an error; if none does, the host is nil.
func (f *Fleet) Keeper(ctx context.Context, number int) (*Steered, string, error) {
	all, err := f.editions(ctx, number)
	if err != nil {
		return nil, "", err
	}
	at, err := f.keeper(all, number)
	if err != nil || at < 0 {
		return nil, "", err
	}
	return f.All[at], all[at][number], nil
}

// editions gives the digests of what each host keeps of some releases.
func (f *Fleet) editions(ctx context.Context, of ...int) ([]map[int]string, error) {
	all := make([]map[int]string, len(f.All))
	return all, f.Each(func(i int, h *Steered) (err error) {
		all[i], err = h.Editions(ctx, of)
		return err
	})
}

// keeper gives the place of the first host that keeps the edition; -1: none does. That there is none but what cannot be read is an error.
func (f *Fleet) keeper(all []map[int]string, number int) (int, error) {
	at, unread := -1, -1
	for i := range all {
		switch digest, has := all[i][number]; {
		case !has:
		case digest == "":
			unread = i
		case at < 0:
			at = i
		case digest != all[at][number]:
			return -1, problem.New(problem.Surprise, "hosts %s and %s keep different copies of the site directory for release %d", f.All[at].Name, f.All[i].Name, number).
				Try("decide which is right, and remove releases/%d/site of the site from the other; --without leaves one out until then", number)
		}
	}
	if at < 0 && unread >= 0 {
		return -1, problem.New(problem.Failed, "the copy of the site directory of release %d on host %s cannot be read, and no other host that answers has one", number, f.All[unread].Name).
			Try("look at releases/%d of the site on that host; or stage the release again under another number", number)
	}
	return at, nil
}

// spread gives the editions of releases to those hosts that have none that can be read: so whichever host is lost, they are not.
func (f *Fleet) spread(ctx context.Context, numbers []int) error {
	if len(numbers) == 0 {
		return nil
	}
	all, err := f.editions(ctx, numbers...)
	if err != nil {
		return err
	}
	for _, number := range numbers {
		from, err := f.keeper(all, number)
		if err != nil {
			return err
		}
		for i := range all {
			if all[i][number] != "" || from < 0 { // that all have lost it is told by who needs it
				continue
			}
			if err := carry(ctx, f.All[from], f.All[i], number, all[from][number]); err != nil {
				return err
			}
		}
	}
	return nil
}

// carry takes an edition from host to host, and wants it to arrive as what it is said to be.
func carry(ctx context.Context, from, to *Steered, number int, digest string) error {
	in, err := from.Edition(ctx, number)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it was only read
	if err := to.KeepEdition(ctx, number, in); err != nil {
		return err
	}
	has, err := to.Editions(ctx, []int{number})
	if err == nil && has[number] != digest {
		err = OtherEdition(from.Name, number)
	}
	return err
}

// OtherEdition tells that a host has given something else than what it says it keeps.
func OtherEdition(host string, number int) error {
	return problem.New(problem.Surprise, "host %s says that it keeps another copy of the site directory of release %d than it gives", host, number).
		Try("look at releases/%d of the site on that host; --without %s leaves it out until then", number, host)
}
