package cli

import (
	"github.com/spf13/cobra"

	"orrery/internal/cli/heaps"
	"orrery/internal/cli/verb"
)

// speadVerb is what the lab measures capture with.
func speadVerb(call *verb.Call) *cobra.Command {
	c := verb.Group("spead", "Send or receive SPEAD heaps over UDP", heaps.Send(call.In, call.Out), heaps.Receive(call.In, call.Out))
	c.Hidden = true
	return c
}
