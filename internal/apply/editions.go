package apply

import (
	"context"
	"slices"

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
func (f *Fleet) recorded(ctx context.Context) ([]observe.Releases, error) {
	all := make([]observe.Releases, len(f.All))
	return all, f.Each(func(i int, h *Steered) (err error) {
		all[i], err = h.Releases.Read(ctx)
		return err
	})
}

// agreed returns what is on record of releases for all hosts.
func (f *Fleet) agreed(ctx context.Context) (observe.Agreed, error) {
	all, err := f.recorded(ctx)
	if err != nil {
		return observe.Agreed{}, err
	}
	words := make([]observe.Word, len(all))
	for i := range all {
		words[i] = observe.Word{Host: f.All[i].Name, Releases: all[i]}
	}
	if slices.ContainsFunc(words, func(w observe.Word) bool { return w.State() != words[0].State() }) { // else nothing need be known of nodes
		if err := f.ask(ctx, words); err != nil {
			return observe.Agreed{}, err
		}
	}
	return f.agree(words)
}

// ask asks the hosts for what decides whose word counts.
func (f *Fleet) ask(ctx context.Context, words []observe.Word) error {
	return f.Each(func(i int, h *Steered) error {
		nodes, err := h.Nodes.List(ctx)
		if err != nil {
			return err
		}
		words[i].Live = live(nodes)
		part, err := h.Backups.Restoring(ctx)
		words[i].Restoring = part != nil && part.Going
		return err
	})
}

// live returns the live nodes of those that a host has, and their releases.
func live(nodes []observe.Node) map[string]int {
	all := map[string]int{}
	for i := range nodes {
		if n := &nodes[i]; !n.Staged {
			all[n.Name] = n.Release
		}
	}
	return all
}

func (f *Fleet) agree(words []observe.Word) (observe.Agreed, error) {
	if len(words) == 1 {
		return observe.Agreed{Releases: words[0].Releases}, nil
	}
	return observe.Agree(words, observe.OwnerOf(f.Site().Nodes, words, len(f.Unknown) > 0))
}

// ReadReleases returns which releases are live, by what all hosts have on record. If they contradict one another, that is an error.
func (f *Fleet) ReadReleases(ctx context.Context) (observe.Releases, error) {
	agreed, err := f.agreed(ctx)
	return agreed.Releases, err
}

// WriteReleases takes down on all hosts which releases are live. The record has one name, which comes after whatever each of them has: should one be lost before it has got it, the others know what it has.
func (f *Fleet) WriteReleases(r observe.Releases) error {
	if len(f.All) == 1 {
		return f.All[0].Releases.Write(r)
	}
	r, err := f.NameReleases(context.Background(), r)
	if err != nil {
		return err
	}
	return f.Each(func(_ int, h *Steered) error { return h.Releases.Copy(r) })
}

// NameReleases returns a record of releases under the name that it gets after those that hosts have.
func (f *Fleet) NameReleases(ctx context.Context, r observe.Releases) (observe.Releases, error) {
	all, err := f.recorded(ctx)
	return r.After(observe.Merged(all)), err
}

// align lets hosts that were observed have what is on record for all of them, as they will before anything is done.
func (f *Fleet) align(hosts []observe.Host) error {
	if len(f.All) < 2 {
		return nil
	}
	words := make([]observe.Word, len(f.All))
	for i := range words {
		words[i] = observe.Word{Host: f.All[i].Name, Releases: hosts[i].Releases, Live: live(hosts[i].Nodes), Restoring: hosts[i].Restoring != nil && hosts[i].Restoring.Going}
	}
	agreed, err := f.agree(words)
	if err != nil {
		return err
	}
	for i := range words {
		agreed.Staged = words[i].Staged
		hosts[i].Releases = agreed.Releases
	}
	return nil
}

// CatchUp lets hosts that are behind have what is on record for all of them, and all hosts what those releases were staged from that are live or were before. Only the holder of the lock may call it. It
// returns the names of the hosts that were behind. If a host has not got the latter, that is what is left; it stops nobody, as another has it.
func (f *Fleet) CatchUp(ctx context.Context) (late []string, left, err error) {
	if len(f.All) < 2 {
		return nil, nil, nil
	}
	agreed, err := f.agreed(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, why := range agreed.Why {
		f.doubt("%s", why)
	}
	if agreed.New {
		if err := f.WriteReleases(agreed.Releases); err != nil {
			return nil, nil, err
		}
		agreed.Behind = nil
	}
	left = f.Spread(ctx, agreed.Needed())
	for _, i := range agreed.Behind {
		if err := f.All[i].Releases.Copy(agreed.Releases); err != nil {
			return late, left, err
		}
		late = append(late, f.All[i].Name)
	}
	return late, left, nil
}
