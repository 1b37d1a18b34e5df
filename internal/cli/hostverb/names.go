package hostverb

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/table"
	"orrery/internal/cli/verb"
	"orrery/internal/control/sites"
)

// Names returns the command `orrery names`.
func Names(call *verb.Call) *cobra.Command {
	var add, remove bool
	c := &cobra.Command{
		Use:   "names",
		Short: "List or install the names by which this host knows nodes",
		Long: `Lists the names of nodes in the hosts file of this host (/etc/hosts).

With --install, the file has the nodes of all sites that are up on this host, as
NODE.SITE at an address that the host reaches: ssh, curl and browsers on this
host then find them. Each site has a marked block, which up, move and down keep
current. Nothing else in the file changes. Twins have no names there.
--uninstall removes all blocks and stops that.`,
		Example: "  orrery names --install && getent hosts portal.toykat",
		Args:    cobra.NoArgs,
		RunE: call.AsRoot(func(c *cobra.Command, _ []string) (err error) {
			var found sites.HostNames
			switch {
			case add:
				found, err = sites.InstallHostNames(c.Context(), call.Session)
			case remove:
				found, err = sites.UninstallHostNames(c.Context(), call.Session)
			default:
				found, err = sites.ReadHostNames(call.Session)
			}
			if err != nil {
				return err
			}
			if len(found.Names) > 0 && !reply.IsJSON(call.Out) {
				return table.List(call.Out, found.Names, "SITE\tADDRESS\tNAMES", func(n sites.HostName) []any {
					return []any{n.Site, n.Address, strings.Join(n.Names, " ")}
				})
			}
			return reply.Answer(call.Out, found, func() { printNoNames(call, found) })
		}),
	}
	c.Flags().BoolVar(&add, "install", false, "keep the names of nodes in the hosts file")
	c.Flags().BoolVar(&remove, "uninstall", false, "remove what --install has written")
	c.MarkFlagsMutuallyExclusive("install", "uninstall")
	return c
}

// printNoNames explains why the hosts file has no names of nodes.
func printNoNames(call *verb.Call, found sites.HostNames) {
	if found.Enabled {
		fmt.Fprintf(call.Out, "%s will have the names of nodes. No site with nodes that this host reaches is up.\n", found.File)
		return
	}
	fmt.Fprintf(call.Out, "%s has no names of nodes. orrery names --install adds them.\n", found.File)
}
