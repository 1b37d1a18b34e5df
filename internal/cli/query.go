package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/problem"
	"orrery/internal/site/inventory"
	"orrery/internal/site/selector"
)

func (a *app) queryVerb() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "query [SELECTOR...]",
		Short:   "Print the names of the nodes that a selector matches",
		Example: `  orrery query 'role=receptor and not host=sv1'`,
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := a.Load()
			if err != nil {
				return err
			}
			nodes, err := selector.Select(s, args...)
			if err != nil {
				return err
			}
			if asJSON {
				all := []any{}
				for _, n := range nodes {
					all = append(all, inventory.HostVars(s, n))
				}
				return reply.JSON(a.out, all)
			}
			for _, n := range nodes {
				fmt.Fprintln(a.out, n.Name)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print everything that is declared of them, as JSON")
	return c
}

func (a *app) inventoryVerb() *cobra.Command {
	var list bool
	var node string
	c := &cobra.Command{
		Use:   "inventory --list | --host NODE",
		Short: "Print the site as an Ansible dynamic inventory",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			s, err := a.Load()
			if err != nil {
				return err
			}
			if node == "" {
				return reply.JSON(a.out, inventory.Inventory(s))
			}
			n, ok := s.Node(node)
			if !ok {
				return problem.New(problem.Usage, "no node is called %q", node).Try("orrery query lists the nodes")
			}
			return reply.JSON(a.out, inventory.HostVars(s, n))
		},
	}
	c.Flags().BoolVar(&list, "list", false, "everything (the default)")
	c.Flags().StringVar(&node, "host", "", "only the variables of this `node`")
	return c
}
