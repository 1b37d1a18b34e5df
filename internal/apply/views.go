package apply

import (
	"context"
	"errors"
	"maps"
	"orrery/internal/observe"
	"orrery/internal/plan/stand"
	"orrery/internal/site"
)

// Views are the site as each of its releases makes it. All hosts of a fleet share them.
type Views struct{ fleet *Fleet }

// Views returns the views of the fleet's site.
func (f *Fleet) Views() Views { return Views{f} }

// Use replaces the site by another one, such as the quarantine of a release.
func (v Views) Use(s *site.Site) { v.fleet.All[0].packer.SetSite(s) }

// Add adds the site as a release makes it, with its secrets.
func (v Views) Add(release int, s *site.Site) {
	v.fleet.All[0].packer.AddRelease(release, s)
	v.fleet.All[0].keys.AddSite(s)
}

// SetHomes sets on which hosts nodes are, or will be, before steps are done.
func (v Views) SetHomes(homes map[string]string) {
	if len(v.fleet.All) > 0 {
		v.fleet.All[0].packer.SetHomes(homes)
	}
}

// Releases returns, by release number, the site as each release makes it that is live on some host.
func (v Views) Releases() map[int]*site.Site {
	if len(v.fleet.All) == 0 {
		return nil
	}
	return v.fleet.All[0].packer.Releases() // all hosts share the packer
}

// Sites returns what a switch needs: the site as each of the releases makes it, and the site
// without a release.
func (v Views) Sites() map[int]*site.Site {
	all := map[int]*site.Site{}
	maps.Copy(all, v.Releases())
	base := 0
	if nodes := v.fleet.Site().Nodes; len(nodes) > 0 {
		base = nodes[0].Release
	}
	all[base] = v.fleet.Site()
	return all
}

// Released returns the site with every node as its live release makes it, according to the observed
// hosts.
func (v Views) Released(s *site.Site, hosts []observe.Host) (*site.Site, error) {
	live, err := stand.Released(s, hosts, v.Releases())
	return live, v.Explain(err)
}

// Live returns the site with every node as its live release makes it.
func (v Views) Live(ctx context.Context, s *site.Site) (*site.Site, error) {
	if len(v.fleet.All) == 1 && len(v.fleet.Unknown) == 0 {
		return v.fleet.All[0].Live(ctx)
	}
	r, err := v.fleet.Records().Read(ctx)
	if err != nil {
		return nil, err
	}
	return v.Released(s, []observe.Host{{Releases: r}})
}

// ForDisplay is like Live, for commands that only display nodes. Nodes of a withheld release are shown
// as the site file declares them.
func (v Views) ForDisplay(ctx context.Context, s *site.Site) (*site.Site, error) {
	if len(v.fleet.withheld) == 0 {
		return v.Live(ctx, s)
	}
	r, err := v.fleet.Records().Read(ctx)
	if err != nil {
		return nil, err
	}
	releases := maps.Clone(v.Releases())
	if releases == nil {
		releases = map[int]*site.Site{}
	}
	for release := range v.fleet.withheld {
		releases[release] = s
	}
	return stand.Released(s, []observe.Host{{Releases: r}}, releases)
}

// Withhold records why a live release is not used.
func (v Views) Withhold(release int, why error) {
	if v.fleet.withheld == nil {
		v.fleet.withheld = map[int]error{}
	}
	v.fleet.withheld[release] = why
}

// Explain returns why a release is not used if err says that it is missing, or err itself.
func (v Views) Explain(err error) error {
	var lost *stand.LostError
	if errors.As(err, &lost) && v.fleet.withheld[lost.Release] != nil {
		return v.fleet.withheld[lost.Release]
	}
	return err
}
