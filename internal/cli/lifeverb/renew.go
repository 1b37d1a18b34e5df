package lifeverb

import (
	"github.com/spf13/cobra"

	"orrery/internal/cli/verb"
	"orrery/internal/control/sites"
)

// Renew returns the command `orrery renew`.
func Renew(call *verb.Call) *cobra.Command {
	c := stateVerb(call, "renew", "Move running virtual machines to the QEMU installed now",
		"up to date", sites.Renew)
	c.Example = "  orrery renew\n  orrery renew gateway"
	c.Long = `Moves running virtual machines to the QEMU and the virtiofsd installed now,
without a reboot. Without SELECTOR, it renews those whose programs were
replaced, as "orrery status" reports.

Processes, memory and connections are kept; each machine pauses for a moment.
The host needs memory for one more machine. A machine that cannot be moved
continues in its former QEMU.`
	return c
}
