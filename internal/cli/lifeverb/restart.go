package lifeverb

import (
	"github.com/spf13/cobra"

	"orrery/internal/cli/value"
	"orrery/internal/cli/verb"
	"orrery/internal/control/nodes"
)

// Restart returns the command `orrery restart`.
func Restart(call *verb.Call) *cobra.Command {
	c := stateVerb(call, "restart", "Stop nodes and start them again, without changes", "missing", nodes.Restart)
	c.Example = "  orrery restart portal\n  orrery restart --hard 'receptor*'"
	return value.EndingFlags(c, &call.Session.Ending)
}
