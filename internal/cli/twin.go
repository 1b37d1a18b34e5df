package cli

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"orrery/internal/cli/completion"
	"orrery/internal/cli/reply"
	"orrery/internal/problem"
	"orrery/internal/site"
)

func (a *app) twinVerb() *cobra.Command {
	c := &cobra.Command{
		Use: "twin", Short: "Manage twins: isolated copies of a site at its own names and addresses",
		Long: `Twins are copies of a site with the same names, addresses, MACs and roles, on isolated networks of their own. They share all layers with the
original. Every command works on a twin with --twin NAME.`,
		Args: someVerb, RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.twinCreate(), a.twinList(), a.twinDestroy())
	for _, verb := range []struct{ name, use, short string }{
		{"status", "status TWIN [SELECTOR...]", "How the nodes of a twin are"},
		{"shell", "shell TWIN NODE [-- COMMAND...]", "A terminal in a node of a twin, or one command there"},
		{"exec", "exec TWIN SELECTOR... -- COMMAND...", "Run a command on many nodes of a twin at once"},
		{"forward", "forward TWIN NODE:PORT", "Publish a port of a twin on loopback"},
	} {
		c.AddCommand(a.twinAlso(verb.name, verb.use, verb.short))
	}
	return c
}

// twinAlso is a verb for a twin that is named first instead of by --twin.
func (a *app) twinAlso(name, use, short string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.MinimumNArgs(1), DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] == "--help" || args[0] == "-h" {
				return c.Help()
			}
			shared, rest := completion.SharedFlags(args)
			if len(rest) == 0 {
				return problem.New(problem.Usage, "of which twin?").Try("orrery twin %s", use)
			}
			b := a.another()
			root := b.root()
			line := append(shared, "--twin", rest[0], name)
			root.SetArgs(append(line, rest[1:]...))
			root.SetIn(a.in)
			root.SetOut(a.out)
			root.SetErr(a.err)
			return root.ExecuteContext(c.Context())
		},
	}
}

func (a *app) twinList() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "ls", Short: "List the twins on this host", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			all := a.Twins()
			if asJSON {
				return reply.JSON(a.out, all)
			}
			t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "TWIN\tSITE\tOWNER\tNODES\tRELEASE\tCREATED\tEXPIRES\tDIRECTORY")
			for _, r := range all {
				nodes, running := a.CountNodes(c.Context(), &site.Site{Name: r.Site, Twin: r.Options.Name})
				expires := "-"
				if !r.Expires.IsZero() {
					expires = r.Expires.Local().Format("2006-01-02 15:04")
					if _, so := a.Forgotten(r.Key()); so {
						expires += " (nobody waits for it)"
					}
				}
				fmt.Fprintf(t, "%s\t%s\t%s\t%d of %d run\t%s\t%s\t%s\t%s\n", r.Options.Name, r.Site, r.Options.Owner, running, nodes,
					site.ReleaseName(r.Options.Release), r.Created.Local().Format("2006-01-02 15:04"), expires, r.Dir)
			}
			return t.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a *app) twinDestroy() *cobra.Command {
	c := &cobra.Command{
		Use: "destroy TWIN", Short: "End a twin, with its data and all that is known of it", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.DestroyTwin(c.Context(), args[0])
		},
	}
	c.Flags().BoolVar(&a.Patient, "wait", false, "wait until nobody else is changing it")
	return c
}
