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
		Use:   "doctor",
		Short: "Check what this machine can do, and how to fix what it cannot",
		Long:  "Checks everything that nodes need of this machine. The exit status is 4 if something is missing.",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			facts := doctor.Examine(call.Session.Dirs.State)
			if err := table.Facts(call.Out, facts); err != nil || reply.IsJSON(call.Out) {
				return err
			}
			if missing := facts.Unmet(doctor.Required); len(missing) > 0 {
				fmt.Fprintf(call.Out, "\n%d things that nodes need are missing.\n", len(missing))
				return problem.Status(problem.Unable)
			}
			return nil
		},
	}, "print JSON")
}
