package siteverb

import (
	"context"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/verb"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/inventory"
)

// Inventory returns the command `orrery inventory`.
func Inventory(call *verb.Call) *cobra.Command {
	var node string
	c := &cobra.Command{
		Use:   "inventory --list | --host NODE",
		Short: "Print the site as an Ansible dynamic inventory",
		Example: `  ansible -i inventory.sh all -m ping   # exec orrery inventory "$@"
  orrery inventory --host portal`,
		Args: cobra.NoArgs,
		RunE: call.WithSite(func(_ context.Context, s *site.Site, _ []string) error {
			if node == "" {
				return reply.JSON(call.Out, inventory.Inventory(s))
			}
			n, ok := s.Node(node)
			if !ok {
				return problem.New(problem.Usage, "no node is called %q", node).Try("orrery query lists the nodes")
			}
			return reply.JSON(call.Out, inventory.HostVars(s, n))
		}),
	}
	c.Flags().Bool("list", false, "print everything (the default)")
	c.Flags().StringVar(&node, "host", "", "print only the variables of this `node`")
	return c
}
