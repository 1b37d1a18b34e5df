package lifeverb

import (
	"github.com/spf13/cobra"

	"orrery/internal/cli/verb"
	"orrery/internal/control/sites"
)

// Start returns the command `orrery start`.
func Start(call *verb.Call) *cobra.Command {
	c := stateVerb(call, "start", "Start stopped nodes, without changes", "running", sites.Start)
	c.Example = "  orrery start portal"
	return c
}
