package apply

import (
	"context"

	"orrery/internal/observe"
)

// Names gives the names of the hosts.
func (f *Fleet) Names() (names []string) {
	for _, h := range f.All {
		names = append(names, h.Name)
	}
	return names
}

// recorded gives what each host has on record of releases.
func (f *Fleet) recorded() ([]observe.Releases, error) {
	all := make([]observe.Releases, len(f.All))
	return all, f.Each(func(i int, h *Steered) (err error) {
		all[i], err = h.ReadReleases()
		return err
	})
}

// records gives what each host has on record of releases, and whose is the newest.
func (f *Fleet) records() (all []observe.Releases, newest int, behind []int, err error) {
	if all, err = f.recorded(); err != nil {
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
func (f *Fleet) rejoin() error {
	all, err := f.recorded()
	if err != nil {
		return err
	}
	if agreed, apart := observe.Apart(all); apart {
		return f.WriteReleases(agreed)
	}
	return nil
}

// ReadReleases tells which releases are live, as the host has it on record that knows most of it. That hosts disagree is an error.
func (f *Fleet) ReadReleases() (observe.Releases, error) {
	all, newest, _, err := f.records()
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
	all, err := f.recorded()
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
	if err := f.rejoin(); err != nil {
		return nil, nil, err
	}
	all, newest, behind, err := f.records()
	if err != nil {
		return nil, nil, err
	}
	left = f.Spread(ctx, all[newest].Needed())
	for _, i := range behind {
		if err := f.All[i].CopyReleases(all[newest]); err != nil {
			return late, left, err
		}
		f.All[i].forgetLive()
		late = append(late, f.All[i].Name)
	}
	return late, left, nil
}
