package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/control"
	"orrery/internal/phrase"
	"orrery/internal/site"
)

// A releaseInfo is one line of `orrery release ls`.
type releaseInfo struct {
	Number     int       `json:"number"`
	Declared   bool      `json:"declared"`
	Live       []string  `json:"live,omitempty"`       // nodes of which it is live
	Quarantine []string  `json:"quarantine,omitempty"` // nodes that it has in quarantine
	Former     bool      `json:"former"`               // rollback returns to it
	Trial      bool      `json:"trial"`
	Until      time.Time `json:"until,omitzero"` // when the trial ends
	Confirmed  bool      `json:"confirmed"`
	control.ReleaseRecord
}

func (a *app) releaseList() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "ls", Short: "List the releases", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := a.Load()
			if err != nil {
				return err
			}
			all, err := a.releaseInfos(c.Context(), s)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(a.out, all)
			}
			t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "RELEASE\tSTATE\tLIVE\tQUARANTINE\tSTAGED\tBY\tNOTES")
			for _, i := range all {
				staged := "-"
				if !i.Staged.IsZero() {
					staged = i.Staged.Local().Format("2006-01-02 15:04")
				}
				fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t%s\t%s\n", site.ReleaseName(i.Number), i.state(), len(i.Live), len(i.Quarantine), staged, cmp.Or(i.Who, "-"), i.Notes)
			}
			if err := t.Flush(); err != nil {
				return err
			}
			return a.UnderWay(s)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (i releaseInfo) state() string {
	switch {
	case i.Trial:
		return "on trial until " + phrase.Clock(i.Until)
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

func (a *app) releaseInfos(ctx context.Context, s *site.Site) ([]releaseInfo, error) {
	h, err := a.Here(s)
	if err != nil {
		return nil, err
	}
	hosts, err := a.Seen(ctx, h)
	if err != nil {
		return nil, err
	}
	r := &hosts[0].Releases
	infos := map[int]*releaseInfo{}
	of := func(number int) *releaseInfo {
		if infos[number] == nil {
			infos[number] = &releaseInfo{Number: number, ReleaseRecord: a.ReadReleaseRecord(s.Key(), number)}
		}
		return infos[number]
	}
	for _, declared := range s.Releases {
		i := of(declared.Number)
		i.Declared, i.Notes = true, cmp.Or(i.Notes, declared.Notes)
	}
	for _, number := range r.Staged {
		of(number)
	}
	for j := range hosts[0].Nodes {
		if n := &hosts[0].Nodes[j]; n.Staged {
			of(n.Release).Quarantine = append(of(n.Release).Quarantine, n.Name)
		} else {
			of(n.Release).Live = append(of(n.Release).Live, n.Name)
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
	var all []releaseInfo
	for _, number := range slices.Sorted(maps.Keys(infos)) {
		all = append(all, *infos[number])
	}
	return all, nil
}
