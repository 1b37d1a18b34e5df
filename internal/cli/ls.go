package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/check"
)

// A siteRow is a site, or a twin, of which something is known on this host.
type siteRow struct {
	Site    string `json:"site"`
	Twin    string `json:"twin,omitempty"`
	Up      bool   `json:"up"` // it was brought up, and not taken down
	Nodes   int    `json:"nodes"`
	Running int    `json:"running"`
	Dir     string `json:"dir,omitempty"`  // it came from there; "": that is not known
	Gone    bool   `json:"gone,omitempty"` // no site file is there any more
}

func (r siteRow) site() *site.Site { return &site.Site{Name: r.Site, Twin: r.Twin} }

func (r siteRow) state() string {
	switch {
	case r.Up:
		return "up"
	case r.Nodes > 0:
		return "partly down"
	}
	return "down"
}

func (a *app) lsVerb() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "ls", Short: "List the sites on this host, and the directories that they came from", Args: cobra.NoArgs,
		Long: `Lists the sites and twins of which something is on this host, be they up or down, with the directory that each came from. That
needs no site directory; "orrery down --name SITE" takes one down whose directory is gone.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := needRoot(); err != nil {
				return err
			}
			rows, err := a.sites(c.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(a.out, rows)
			}
			t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "SITE\tSTATE\tNODES\tDIRECTORY")
			for _, r := range rows {
				dir := dash(r.Dir)
				if r.Gone {
					dir += " (gone)"
				}
				fmt.Fprintf(t, "%s\t%s\t%d of %d run\t%s\n", r.site().Key(), r.state(), r.Running, r.Nodes, dir)
			}
			return t.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// sites gives the sites and twins of which something is known on this host, by name.
func (a *app) sites(ctx context.Context) ([]siteRow, error) {
	entries, err := os.ReadDir(a.dirs.Site(""))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	rows := []siteRow{}
	for _, e := range entries {
		name, twin, _ := strings.Cut(e.Name(), ".")
		if !e.IsDir() || !check.Label(name) { // half made, by a run that was killed
			continue
		}
		r := siteRow{Site: name, Twin: twin}
		m, up := readMarker(a.markerPath(e.Name()))
		if !up {
			m, _ = readMarker(a.formerPath(e.Name()))
		}
		if of, err := a.readTwin(e.Name()); err == nil && twin != "" {
			m.Dir = of.Dir
		}
		r.Up, r.Dir = up, m.Dir
		r.Gone = m.Dir != "" && !m.there()
		r.Nodes, r.Running = a.countNodes(ctx, r.site())
		rows = append(rows, r)
	}
	return rows, nil
}

// siteByName gives what can be known of a site without its directory. One of which it is not known whether it is in production is taken for one.
func (a *app) siteByName(name string) (*site.Site, error) {
	s := &site.Site{Name: name, Twin: a.twin, Production: a.twin == ""}
	if _, err := os.Stat(a.dirs.Site(s.Key())); err != nil || !check.Label(name) || a.twin != "" && !check.Label(a.twin) {
		all, _ := filepath.Glob(a.dirs.Site("[^.]*"))
		for i := range all {
			all[i] = filepath.Base(all[i])
		}
		p := problem.New(problem.Usage, "nothing of a site %q is on this host", s.Key()).At(a.dirs.Site(""))
		if near := problem.Nearest(s.Key(), all); near != "" {
			return nil, p.Try("%s is the nearest", near)
		}
		return nil, p.Try("orrery ls lists the sites")
	}
	if m, ok := readMarker(a.markerPath(s.Key())); ok && m.Production != nil {
		s.Production = *m.Production
	}
	return s, nil
}
