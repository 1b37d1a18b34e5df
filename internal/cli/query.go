package cli

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/verb"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/inventory"
	"orrery/internal/site/selector"
)

func queryVerb(call *verb.Call) *cobra.Command {
	return verb.WithJSON(&cobra.Command{
		Use:     "query [SELECTOR...]",
		Short:   "Print the names of the nodes that a selector matches",
		Example: `  orrery query 'role=receptor and not host=sv1'`,
		RunE: call.OnSite(func(_ context.Context, s *site.Site, args []string) error {
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
	}, "print everything that is declared of them, as JSON")
}

func inventoryVerb(call *verb.Call) *cobra.Command {
	var node string
	c := &cobra.Command{
		Use:   "inventory --list | --host NODE",
		Short: "Print the site as an Ansible dynamic inventory",
		Args:  cobra.NoArgs,
		RunE: call.OnSite(func(_ context.Context, s *site.Site, _ []string) error {
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
	c.Flags().Bool("list", false, "everything (the default)")
	c.Flags().StringVar(&node, "host", "", "only the variables of this `node`")
	return c
}

func sshConfigVerb(call *verb.Call) *cobra.Command {
	return &cobra.Command{
		Use:     "ssh-config",
		Short:   "Print an ssh configuration with every node and its host key",
		Example: "  orrery ssh-config > ~/.ssh/karoo.conf && ssh -F ~/.ssh/karoo.conf portal",
		Args:    cobra.NoArgs,
		RunE: call.OnSite(func(_ context.Context, s *site.Site, _ []string) error {
			_, err := call.Out.Write(inventory.SSHConfig(s, filepath.Join(call.Session.Dirs.Keys(s.Key()), "known_hosts")))
			return err
		}),
	}
}
