package siteverb

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/table"
	"orrery/internal/cli/verb"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/inventory"
	"orrery/internal/site/selector"
)

// Query returns the command `orrery query`.
func Query(call *verb.Call) *cobra.Command {
	c := verb.WithJSON(&cobra.Command{
		Use:     "query [SELECTOR...]",
		Short:   "Print the names of the nodes that a selector matches",
		Example: `  orrery query 'role=receptor and not host=sv1'`,
		Args:    cobra.ArbitraryArgs, // and not the name of a subcommand
		RunE: call.WithSite(func(_ context.Context, s *site.Site, args []string) error {
			nodes, err := selector.Select(s, args...)
			if err != nil {
				return err
			}
			all := []any{}
			for _, n := range nodes {
				all = append(all, inventory.HostVars(s, n))
			}
			return reply.Answer(call.Out, all, func() {
				for _, n := range nodes {
					fmt.Fprintln(call.Out, n.Name)
				}
			})
		}),
	}, "print everything declared for the nodes, as JSON")
	c.AddCommand(queryVars(call))
	return c
}

func queryVars(call *verb.Call) *cobra.Command {
	return verb.WithJSON(&cobra.Command{
		Use:   "vars NODE",
		Short: "Print the variables of a node, and where each comes from",
		Long: `Prints the variables that templates see as .Node.Vars: those of the site, of the
node's groups in the order of site.toml, and of the node. Of variables with the
same name, the last one counts; HIDES lists the others.`,
		Example: "  orrery query vars portal",
		Args:    cobra.ExactArgs(1),
		RunE: call.WithSite(func(_ context.Context, s *site.Site, args []string) error {
			n, ok := s.Node(args[0])
			if !ok {
				var known []string
				for i := range s.Nodes {
					known = append(known, s.Nodes[i].Name)
				}
				return problem.New(problem.Usage, "no node is called %q", args[0]).
					Try("%s", problem.SuggestOr(args[0], known, "orrery query lists the nodes"))
			}
			all := inventory.DeclaredVars(s, n)
			return table.List(call.Out, all, "NAME\tVALUE\tFROM\tHIDES", func(v inventory.DeclaredVar) []any {
				value, _ := json.Marshal(v.Value) // package check refuses what cannot be encoded
				hides := "-"
				if len(v.Hides) > 0 {
					hides = strings.Join(v.Hides, ", ")
				}
				return []any{v.Name, string(value), v.From, hides}
			})
		}),
	}, "print JSON")
}
