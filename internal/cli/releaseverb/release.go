// Package releaseverb has the verbs for releases and twins.
package releaseverb

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/table"
	"orrery/internal/cli/verb"
	"orrery/internal/control"
	"orrery/internal/control/overdue"
	"orrery/internal/control/register"
	"orrery/internal/control/releases"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// Release returns the command `orrery release`.
func Release(call *verb.Call) *cobra.Command {
	return verb.Group("release", "List, show, compare, trust and prune releases", releaseList(call),
		releaseShow(call), releaseDiff(call), releaseTrust(call), releasePrune(call))
}

func releaseList(call *verb.Call) *cobra.Command {
	return verb.WithJSON(&cobra.Command{
		Use: "ls", Short: "List the releases",
		Example: "  orrery release ls",
		Args:    cobra.NoArgs,
		RunE: call.WithSite(func(ctx context.Context, s *site.Site, _ []string) error {
			all, err := releases.List(ctx, call.Session, s)
			if err != nil {
				return err
			}
			err = table.List(call.Out, all, "RELEASE\tSTATE\tLIVE\tQUARANTINE\tSTAGED\tBY\tNOTES", func(i releases.Info) []any {
				staged := "-"
				if !i.Staged.IsZero() {
					staged = table.Minute(i.Staged)
				}
				return []any{site.ReleaseName(i.Number), i.State(), len(i.Live), len(i.Quarantine), staged, cmp.Or(i.Who, "-"),
					i.Notes}
			})
			if err != nil || reply.IsJSON(call.Out) {
				return err
			}
			return overdue.ReportPending(ctx, call.Session, s)
		}),
	}, "print JSON")
}

func releaseShow(call *verb.Call) *cobra.Command {
	return verb.WithJSON(&cobra.Command{
		Use: "show NUMBER [SELECTOR...]", Short: "Show a release's layers and package versions, node by node",
		Example: "  orrery release show 701 role=portal",
		Args:    cobra.MinimumNArgs(1),
		RunE: call.WithSite(func(ctx context.Context, s *site.Site, args []string) error {
			all, err := contents(ctx, call.Session, s, args[0], args[1:])
			if err != nil {
				return err
			}
			return reply.Answer(call.Out, all, func() { printContents(call.Out, all) })
		}),
	}, "print JSON, with all packages")
}

// contents returns what the nodes of a release consist of.
func contents(ctx context.Context, session *control.Session, s *site.Site, release string,
	selectors []string) ([]releases.Contents, error) {
	number, err := register.ReleaseNumber(s, release)
	if err != nil {
		return nil, err
	}
	return releases.Show(ctx, session, s, number, selectors)
}

// printContents prints the contents of nodes, once for nodes with the same contents.
func printContents(out io.Writer, all []releases.Contents) {
	var t table.GroupedTexts
	for _, n := range all {
		var b strings.Builder
		fmt.Fprintf(&b, "  roles %s\n  layers %s\n  content %s\n  %s, %s\n", strings.Join(n.Roles, ", "),
			strings.TrimSpace(n.Base+" "+n.Layer),
			strings.Join(n.Content, " "), humanize.Plural(len(n.Packages), "Debian package"),
			humanize.Plural(len(n.Python), "Python package"))
		for _, name := range slices.Sorted(maps.Keys(n.Python)) {
			fmt.Fprintf(&b, "    %s==%s\n", name, n.Python[name])
		}
		t.Add(fmt.Sprintf("%s (%d)", n.Node, n.ID), b.String())
	}
	t.Print(out)
}

func releaseDiff(call *verb.Call) *cobra.Command {
	return verb.WithJSON(&cobra.Command{
		Use: "diff A B [SELECTOR...]", Short: "Show how two releases differ, node by node",
		Example: "  orrery release diff 700 701",
		Long: `Shows how nodes differ between two releases: settings, a diff of each file, and
packages with their versions. Release 0 are the nodes without a release. Values
of secrets are never shown.`,
		Args: cobra.MinimumNArgs(2),
		RunE: call.WithSite(func(ctx context.Context, s *site.Site, args []string) error {
			var numbers [2]int
			for i := range numbers {
				var err error
				if numbers[i], err = register.ReleaseNumber(s, args[i]); err != nil {
					return err
				}
			}
			all, err := releases.Compare(ctx, call.Session, s, numbers, args[2:])
			if err != nil {
				return err
			}
			return reply.Answer(call.Out, all, func() {
				var t table.GroupedTexts // prints once what differs in the same way on several nodes
				for _, d := range all {
					t.Add(d.Node, differenceText(&d))
				}
				t.Print(call.Out)
			})
		}),
	}, "print JSON")
}

func differenceText(d *releases.Difference) string {
	switch {
	case d.Added:
		return "  added\n"
	case d.Removed:
		return "  removed\n"
	case d.Same():
		return "  the same\n"
	}
	var b strings.Builder
	for _, line := range d.Lines {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	if d.Content && len(d.Lines)+len(d.Packages) == 0 {
		b.WriteString("  the content of the layers differs\n")
	}
	for _, p := range d.Packages {
		fmt.Fprintf(&b, "  %s package %s: %s -> %s\n", p.Kind, p.Name, cmp.Or(p.Was, "none"), cmp.Or(p.Is, "none"))
	}
	return b.String()
}

func releasePrune(call *verb.Call) *cobra.Command {
	keep := 2
	c := &cobra.Command{
		Use: "prune", Short: "Remove old releases",
		Example: "  orrery release prune --keep 3",
		Args:    cobra.NoArgs,
		Long: `Removes all releases except those that are live or to which a rollback or the
end of a trial returns, the one that was confirmed last, and the newest of the
others.`,
		RunE: call.WithSite(func(ctx context.Context, s *site.Site, _ []string) error {
			gone, err := releases.Prune(ctx, call.Session, s, keep)
			if err != nil {
				return err
			}
			if gone == nil {
				fmt.Fprintf(call.Out, "%s: nothing to prune.\n", s.Key())
				return nil
			}
			fmt.Fprintf(call.Out, "%s: %s of releases removed (%s).\n", s.Key(), humanize.Plural(gone.Nodes, "node"),
				humanize.List(gone.Releases, len(gone.Releases)))
			return nil
		}),
	}
	call.ProductionFlag(c)
	c.Flags().IntVar(&keep, "keep", keep, "how many removable releases to keep, newest first")
	return c
}
