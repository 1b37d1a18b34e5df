package cli

import (
	"github.com/spf13/cobra"

	"orrery/internal/cli/heaps"
)

// speadVerb is what the lab measures capture with.
func (a *app) speadVerb() *cobra.Command {
	c := group("spead", "Send or receive SPEAD heaps over UDP", heaps.Send(a.in, a.out), heaps.Receive(a.in, a.out))
	c.Hidden = true
	return c
}
