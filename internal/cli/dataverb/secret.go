package dataverb

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/table"
	"orrery/internal/cli/verb"
	"orrery/internal/control/secrets"
	"orrery/internal/control/sites"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
	"orrery/internal/text/sanitize"
)

// Secret returns the command `orrery secret`.
func Secret(call *verb.Call) *cobra.Command {
	return verb.Group("secret", "List the secrets of a site, and give one a new value", secretList(call),
		secretRotate(call))
}

func secretList(call *verb.Call) *cobra.Command {
	c := &cobra.Command{
		Use:     "ls",
		Short:   "List the secrets, who reads them, and which nodes are current",
		Example: "  orrery secret ls",
		Long: `Lists the secrets of the site: where the value comes from, its generation, the
roles that read it, and on how many of their nodes the generation is current.
If each node has its own value, the lowest and the highest generation are shown.
Values are never shown.`,
		Args: cobra.NoArgs,
		RunE: call.WithHosts(func(ctx context.Context, s *site.Site, _ []string) error {
			all, err := secrets.List(ctx, call.Session, s)
			if err != nil {
				return err
			}
			err = table.List(call.Out, all, "SECRET\tFROM\tGENERATION\tCURRENT ON\tROLES", func(r secrets.Row) []any {
				from := r.From
				if r.Source != "" {
					from += " " + sanitize.Line(r.Source)
				}
				if r.Format != "" {
					from += " " + r.Format
				}
				if r.PerNode != nil {
					from += " per node"
				}
				roles := strings.Join(r.Roles, ",")
				if roles == "" {
					roles = "-"
				}
				return []any{r.Secret, from, generations(r), r.Progress(), roles}
			})
			if err == nil && !reply.IsJSON(call.Out) {
				printUnfinished(call, all)
			}
			return err
		}),
	}
	call.WithoutFlag(c)
	return verb.WithJSON(c, "print JSON")
}

// generations returns the generation of a secret, or those of its nodes.
func generations(r secrets.Row) string {
	lowest := r.Generation
	for _, n := range r.PerNode {
		lowest = min(lowest, n)
	}
	if lowest < r.Generation {
		return fmt.Sprintf("%d-%d", lowest, r.Generation)
	}
	return strconv.Itoa(r.Generation)
}

// printUnfinished prints what has to be done about secrets.
func printUnfinished(call *verb.Call, all []secrets.Row) {
	for _, r := range all {
		switch {
		case r.Hosts != "":
			fmt.Fprintf(call.Out, "%s: %s: orrery secret rotate %s finishes the rotation\n", r.Secret, r.Hosts, r.Secret)
		case r.Changed:
			fmt.Fprintf(call.Out, "%s: %s has changed: orrery up starts generation %d\n", r.Secret, r.Source, r.Generation+1)
		case len(r.Behind) > 0 && r.PerNode != nil:
			fmt.Fprintf(call.Out, "%s: the new value is not yet on %s: orrery up finishes the rotation\n", r.Secret,
				humanize.List(r.Behind, 12))
		case len(r.Behind) > 0:
			fmt.Fprintf(call.Out, "%s: generation %d on %s, not yet on %s: orrery up finishes the rotation\n", r.Secret,
				r.Generation, r.Progress(), humanize.List(r.Behind, 12))
		}
	}
}

func secretRotate(call *verb.Call) *cobra.Command {
	node := ""
	c := &cobra.Command{
		Use:     "rotate NAME",
		Short:   "Give a secret a new value, and restart what reads it",
		Example: "  orrery secret rotate db_password\n  orrery secret rotate osd_key --node osd1",
		Long: `Makes a new value of a generated secret, or fetches it from the command that
prints it, and applies the roles that read it: boot steps run, services restart.
Nodes that need others wait until those are healthy, as in "orrery up". Other
pending changes of these nodes are applied, too. If each node has its own value,
all of them are replaced, or that of --node.

If a rotation was interrupted, run it again to finish it. For a secret that is
the content of a file, change the file and run "orrery up".`,
		Args: cobra.ExactArgs(1),
		RunE: call.WithSite(func(ctx context.Context, s *site.Site, args []string) error {
			result, err := sites.Rotate(ctx, call.Session, s, args[0], node)
			return verb.PrintUp(ctx, call.Session, call.Out, s, nil, result, err)
		}),
	}
	c.Flags().StringVar(&node, "node", "", "only the value of this `node`")
	call.ProductionFlag(c)
	return c
}
