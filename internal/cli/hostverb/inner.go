package hostverb

import (
	"strings"

	"github.com/spf13/cobra"

	"orrery/internal/apply/remote"
	"orrery/internal/cli/verb"
	"orrery/internal/control"
	"orrery/internal/control/guard"
	"orrery/internal/control/here"
	"orrery/internal/control/overdue"
	"orrery/internal/journal/hook"
)

// Internal returns the verbs that Orrery itself runs, and not its users. Bench runs the experiments
// that another host requests. It is nil if this program has no lab.
func Internal(call *verb.Call, bench remote.ExperimentRunner) []*cobra.Command {
	return []*cobra.Command{helper(call.Session, bench), hooks(call), thaw(call), hostRun(call)}
}

// helper serves requests from a control host, which starts it by ssh.
func helper(s *control.Session, bench remote.ExperimentRunner) *cobra.Command {
	return &cobra.Command{
		Use: here.HelperVerb, Hidden: true, Args: cobra.NoArgs,
		Short: "Serve a control host's requests on the standard streams",
		RunE: func(c *cobra.Command, _ []string) error {
			overdue.RestartWaiters(c.Context(), s)
			return here.LocalMachine{Dirs: s.Dirs, Version: s.Version}.ServeHelper(c.Context(), bench)
		},
	}
}

// hooks delivers the waiting events of a site to its hooks. The process that has an event starts
// it, and does not wait for it.
func hooks(call *verb.Call) *cobra.Command {
	return &cobra.Command{
		Use: "hook SITE", Hidden: true, Args: cobra.ExactArgs(1),
		Short: "Deliver waiting events to the hooks of a site",
		RunE: call.AsRoot(func(c *cobra.Command, args []string) error {
			return hook.Deliver(c.Context(), call.Session.Dirs, args[0])
		}),
	}
}

// thaw guards frozen nodes.
func thaw(call *verb.Call) *cobra.Command {
	return &cobra.Command{
		Use: "thaw ENGINE/SITE/ID/NAME...", Hidden: true, Args: cobra.MinimumNArgs(1),
		Short: "Thaw nodes if the process that froze them ends before it does",
		RunE: func(c *cobra.Command, nodes []string) error {
			return guard.Thaw(c.Context(), call.Session.Dirs, call.In, nodes)
		},
	}
}

// hostRun carries out the plan that this host has stored for a trigger. It is started by timers,
// and by processes that find a plan without a waiting process.
func hostRun(call *verb.Call) *cobra.Command {
	return &cobra.Command{
		Use: "host-run SITE TRIGGER [PART]", Hidden: true, Args: cobra.RangeArgs(2, 3),
		Short: "Carry out the plan that this host has stored for a site",
		RunE: func(c *cobra.Command, args []string) error {
			return control.Unattended(call.Session, args[0]).Run(c.Context(), args[1], strings.Join(args[2:], ""))
		},
	}
}
