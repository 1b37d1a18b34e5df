// Package releases has the operations on releases: stage, switch, roll back, try for a while, list,
// compare and remove.
package releases

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"orrery/internal/control"
	"orrery/internal/control/register"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// An Info describes a release of a site.
type Info struct {
	Number     int       `json:"number"`
	Declared   bool      `json:"declared"`
	Live       []string  `json:"live,omitempty"`       // nodes on which it is live
	Quarantine []string  `json:"quarantine,omitempty"` // nodes that it has in quarantine
	Former     bool      `json:"former"`               // rollback returns to it
	Trial      bool      `json:"trial"`
	Until      time.Time `json:"until,omitzero"` // when the trial ends
	Confirmed  bool      `json:"confirmed"`
	register.ReleaseRecord
}

// State returns the state of a release in words.
func (i Info) State() string {
	switch {
	case i.Trial:
		return "on trial until " + humanize.Time(i.Until)
	case len(i.Live) > 0 && i.Confirmed:
		return "live, confirmed"
	case len(i.Live) > 0:
		return "live"
	case i.Former:
		return "former"
	case len(i.Quarantine) > 0:
		return "staged"
	case !i.Staged.IsZero():
		return "kept"
	}
	return "declared"
}

// List returns the releases of a site, by number.
func List(ctx context.Context, c *control.Session, s *site.Site) ([]Info, error) {
	f, err := c.Hosts(ctx, s)
	if err != nil {
		return nil, err
	}
	hosts, err := c.Observe(ctx, f)
	if err != nil {
		return nil, err
	}
	r := &hosts[0].Releases
	infos := map[int]*Info{}
	of := func(number int) *Info {
		if infos[number] == nil {
			record, err := c.Register().ReadReleaseRecord(s.Key(), number)
			if err != nil {
				c.Notice(s.Key(), "who staged release %d cannot be read: %v", number, err)
			}
			infos[number] = &Info{Number: number, ReleaseRecord: record}
		}
		return infos[number]
	}
	for _, declared := range s.Releases {
		i := of(declared.Number)
		i.Declared, i.Notes = true, cmp.Or(i.Notes, declared.Notes)
	}
	for i := range hosts {
		for _, number := range hosts[i].Releases.Staged {
			of(number)
		}
		for j := range hosts[i].Nodes {
			if n := &hosts[i].Nodes[j]; n.Staged {
				of(n.Release).Quarantine = append(of(n.Release).Quarantine, n.Name)
			} else {
				of(n.Release).Live = append(of(n.Release).Live, n.Name)
			}
		}
	}
	for _, number := range r.Former {
		of(number).Former = true
	}
	for _, number := range r.Confirmed {
		of(number).Confirmed = true
	}
	if r.Trial != nil {
		of(r.Trial.Release).Trial, of(r.Trial.Release).Until = true, r.Trial.Until
	}
	var all []Info
	for _, number := range slices.Sorted(maps.Keys(infos)) {
		all = append(all, *infos[number])
	}
	return all, nil
}
