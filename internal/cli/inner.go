package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"orrery/internal/cli/verb"
	"orrery/internal/control"
	"orrery/internal/control/guard"
	"orrery/internal/hook"
)

// The verbs in this file are begun by Orrery itself, and not by its users.

// hookVerb tells the hooks of a site what waits to be told. It is begun by whoever has something to tell, who does not wait for it.
func hookVerb(call *verb.Call) *cobra.Command {
	return &cobra.Command{
		Use: "hook SITE", Hidden: true, Args: cobra.ExactArgs(1),
		Short: "Tell the hooks of a site what waits to be told",
		RunE: call.AsRoot(func(c *cobra.Command, args []string) error {
			return hook.Deliver(c.Context(), call.Session.Dirs, args[0])
		}),
	}
}

// thawVerb guards nodes that stand still.
func thawVerb(call *verb.Call) *cobra.Command {
	return &cobra.Command{
		Use: "thaw ENGINE/SITE/ID/NAME...", Hidden: true, Args: cobra.MinimumNArgs(1),
		Short: "Wait until the process that froze these nodes has ended, and let them go on if it did not",
		RunE: func(c *cobra.Command, nodes []string) error {
			return guard.Thaw(c.Context(), call.Session.Dirs, call.In, nodes)
		},
	}
}

// hostRunVerb carries out what this host has planned for a trigger. It is begun by timers, and by whoever finds that nobody watches.
func hostRunVerb(call *verb.Call) *cobra.Command {
	return &cobra.Command{
		Use: "host-run SITE TRIGGER [PART]", Hidden: true, Args: cobra.RangeArgs(2, 3),
		Short: "Do what this host has planned for a site, without its site directory",
		RunE: func(c *cobra.Command, args []string) error {
			return control.Unattended(call.Session, args[0]).Run(c.Context(), args[1], strings.Join(args[2:], ""))
		},
	}
}
