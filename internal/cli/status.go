package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/engine"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/role"
	"orrery/internal/site"
	"orrery/internal/site/render"
	"orrery/internal/site/selector"
	"orrery/internal/site/spec"
)

func (a *app) statusVerb() *cobra.Command {
	var asJSON, watch, probe bool
	c := &cobra.Command{
		Use:   "status [SELECTOR...]",
		Short: "How the nodes are",
		Long: `Shows every node with its addresses and how it is. Health is that which was proven last; --probe tries the checks now.
The exit status is 11 if a node is not as declared.`,
		RunE: func(c *cobra.Command, args []string) error {
			for {
				s, err := a.load()
				if err != nil {
					return err
				}
				rows, err := a.rows(c.Context(), s, args, probe)
				if err != nil {
					return err
				}
				if watch {
					fmt.Fprint(unshown(a.out), "\x1b[H\x1b[2J")
				}
				if asJSON {
					err = printJSON(a.out, rows)
				} else {
					err = printRows(a.out, rows)
				}
				if err == nil {
					err = a.underWay(s)
				}
				if err != nil || !watch {
					return firstError(err, verdict(rows))
				}
				select {
				case <-time.After(time.Second):
				case <-c.Context().Done():
					return nil
				}
			}
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVarP(&watch, "watch", "w", false, "again every second")
	c.Flags().BoolVar(&probe, "probe", false, "try the health checks now")
	return c
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// underWay tells of a trial, and of a switch that was interrupted.
func (a *app) underWay(s *site.Site) error {
	h, err := a.bare(s)
	if err != nil {
		return err
	}
	r, err := h.ReadReleases()
	if err != nil {
		return err
	}
	switch {
	case r.Trial == nil:
	case a.watched(s):
		fmt.Fprintf(a.err, "orrery: release %d is on trial until %s; then it is confirmed or goes back to release %s.\n",
			r.Trial.Release, clock(r.Trial.Until), at(r.Trial.Back))
	default:
		fmt.Fprintf(a.err, "orrery: release %d is on trial until %s, but nobody watches over it: the process that did has ended (orrery resume, and whatever changes the site, sees to it).\n",
			r.Trial.Release, clock(r.Trial.Until))
	}
	if twin, so := a.forgotten(s.Key()); so {
		fmt.Fprintf(a.err, "orrery: twin %s is to end at %s, but the process that waited for that has ended (orrery resume, and whatever changes a site here, sees to it).\n",
			s.Twin, clock(twin.Expires))
	}
	if r.Switch == nil {
		return nil
	}
	return problem.New(problem.HalfWay, "a switch of %s to release %s is under way or was interrupted; the set may not be wholly at one release",
		r.Switch.Who, at(r.Switch.To)).At(s.Key()).Try("orrery up takes it to release %s", at(r.Switch.End))
}

// A row is one node in the table.
type row struct {
	Node       string            `json:"node"`
	ID         int               `json:"id"`
	Release    int               `json:"release,omitempty"`
	Quarantine bool              `json:"quarantine,omitempty"` // beside the live one
	Host       string            `json:"host"`
	State      string            `json:"state"`
	Health     string            `json:"health"`
	Roles      []string          `json:"roles"`
	Addresses  map[string]string `json:"addresses"`
	Detail     string            `json:"detail,omitempty"`
	networks   []string
}

// standing says of which release a node is, and whether that is live.
func (r row) standing() string {
	release := "none"
	if r.Release != 0 {
		release = strconv.Itoa(r.Release)
	}
	if r.Quarantine {
		return release + " (quarantine)"
	}
	return release
}

// good reports whether the node is as declared.
func (r row) good() bool {
	return r.State == string(observe.Running) && (r.Health == healthy || r.Health == "-") || r.State == string(observe.Stopped) && r.Health == "off"
}

const healthy = "healthy"

func (a *app) status(ctx context.Context, s *site.Site, selectors []string) error {
	rows, err := a.rows(ctx, s, selectors, false)
	if err != nil {
		return err
	}
	return printRows(a.out, rows)
}

func (a *app) rows(ctx context.Context, s *site.Site, selectors []string, probe bool) ([]row, error) {
	if err := needRoot(); err != nil {
		return nil, err // the records of nodes are nobody else's to read
	}
	h, err := a.here(s)
	if err != nil {
		return nil, err
	}
	if s, err = h.Live(); err != nil {
		return nil, err
	}
	nodes, err := selector.Select(s, selectors...)
	if err != nil {
		return nil, err
	}
	there, beside := map[string]observe.Node{}, map[string][]observe.Node{}
	for _, e := range h.Engines {
		list, err := e.List(ctx, s.Key())
		if err != nil {
			return nil, err
		}
		for _, n := range list {
			if n.Staged {
				beside[n.Name] = append(beside[n.Name], n)
			} else {
				there[n.Name] = n
			}
		}
	}
	rows := make([]row, 0, len(nodes))
	var round probes
	makers := map[*site.Site]*spec.Maker{}
	for _, n := range nodes {
		of := h.SiteOf(n)
		if makers[of] == nil {
			makers[of] = spec.NewMaker(of)
		}
		has, ok := there[n.Name]
		r := newRow(makers[of], n, h.Name, has, ok)
		if probe && r.State == string(observe.Running) {
			in := h.Engines[n.Engine].Runner(engine.RefOf(&has.Node))
			round.add(len(rows), role.Allowance(of, n), func(ctx context.Context) error { return role.Probe(ctx, in, render.New(of), of, n) })
		}
		rows = append(rows, r)
		for i := range beside[n.Name] {
			rows = append(rows, quarantined(r, &beside[n.Name][i]))
		}
	}
	for i, err := range round.run(ctx) {
		rows[i].Health, rows[i].Detail = "unhealthy", h.Keys.Redact(err.Error())
	}
	return rows, nil
}

// quarantined gives the row of an instance beside the live one.
func quarantined(of row, n *observe.Node) row {
	r := of
	r.ID, r.Release, r.Quarantine, r.State, r.Health, r.Detail = n.ID, n.Release, true, string(n.State), "-", ""
	switch {
	case n.State != observe.Running:
	case slices.ContainsFunc(n.Mounts, func(m spec.Mount) bool { return m.Copy == spec.NoCopy }):
		r.Health = "retired" // it lets others have its volumes
	case !n.Configured:
		r.Health = "not configured"
	case n.Config.Health != "" && n.Proven != n.Config.Health:
		r.Health = "not proven"
	case n.Config.Health != "":
		r.Health = healthy
	}
	return r
}

func newRow(maker *spec.Maker, n *site.Node, hostName string, has observe.Node, there bool) row {
	r := row{Node: n.Name, ID: n.FullID(), Release: n.Release, Host: hostName, State: "absent", Health: "-", Roles: n.Roles, Addresses: map[string]string{}}
	for _, nic := range n.NICs {
		r.networks = append(r.networks, nic.Network)
		r.Addresses[nic.Network] = nic.Address.String()
	}
	if !there {
		return r
	}
	r.State = string(has.State)
	r.ID, r.Release = has.ID, has.Release // others than declared, if a switch was interrupted
	wanted, err := maker.Node(n)
	switch {
	case has.State == observe.Stopped && !n.Autostart:
		r.Health = "off"
	case has.State != observe.Running:
	case !has.Configured:
		r.Health = "not configured"
	case err == nil && wanted.Config.Health != "" && has.Proven == "":
		r.Health = "not proven"
	case err == nil && wanted.Config.Health == "":
		r.Health = "-"
	default:
		r.Health = healthy
	}
	return r
}

func verdict(rows []row) error {
	for _, r := range rows {
		if !r.Quarantine && !r.good() {
			return problem.Status(problem.Unhealthy)
		}
	}
	return nil
}

func printRows(w io.Writer, rows []row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	released := slices.ContainsFunc(rows, func(r row) bool { return r.Release != 0 || r.Quarantine })
	column := ""
	if released {
		column = "RELEASE\t"
	}
	fmt.Fprintf(t, "NODE\tID\tHOST\t%sSTATE\tHEALTH\tADDRESSES\tROLES\n", column)
	for _, r := range rows {
		var addresses []string
		for _, network := range r.networks {
			addresses = append(addresses, network+"="+r.Addresses[network])
		}
		if released {
			column = r.standing() + "\t"
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%s%s\t%s\t%s\t%s\n", r.Node, r.ID, r.Host, column, r.State, r.Health, strings.Join(addresses, " "), strings.Join(r.Roles, ","))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Detail != "" {
			fmt.Fprintf(w, "%s: %s\n", r.Node, r.Detail)
		}
	}
	return nil
}
