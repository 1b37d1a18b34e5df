package hostverb

import (
	"fmt"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/table"
	"orrery/internal/cli/verb"
	"orrery/internal/host/doctor"
	"orrery/internal/problem"
)

// Doctor returns the command `orrery doctor`.
func Doctor(call *verb.Call) *cobra.Command {
	return verb.WithJSON(&cobra.Command{
		Use:     "doctor",
		Short:   "Check whether this host is fit for nodes, and how to fix it",
		Example: "  orrery doctor",
		Long:    "Checks everything that nodes need from this host. The exit status is 4 if\nsomething is missing.",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			facts := doctor.Examine(call.Session.Dirs.State)
			if err := table.Facts(call.Out, facts); err != nil || reply.IsJSON(call.Out) {
				return err
			}
			if missing := facts.Unmet(doctor.Required); len(missing) > 0 {
				fmt.Fprintf(call.Out, "\nMissing requirements of nodes: %d.\n", len(missing))
				return problem.Status(problem.Unable)
			}
			return nil
		},
	}, "print JSON")
}
