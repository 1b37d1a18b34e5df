package lifeverb

import (
	"github.com/spf13/cobra"

	"orrery/internal/cli/value"
	"orrery/internal/cli/verb"
	"orrery/internal/control/sites"
)

// Stop returns the command `orrery stop`.
func Stop(call *verb.Call) *cobra.Command {
	c := stateVerb(call, "stop", "Shut nodes down and keep their data", "stopped", sites.Stop)
	c.Example = "  orrery stop 'receptor*'\n  orrery stop --timeout 5m db"
	return value.EndingFlags(c, &call.Session.Ending)
}
