package lifeverb

import (
	"github.com/spf13/cobra"

	"orrery/internal/cli/verb"
	"orrery/internal/control/sites"
)

// Renew returns the command `orrery renew`.
func Renew(call *verb.Call) *cobra.Command {
	c := stateVerb(call, "renew", "Let virtual machines go on in the QEMU that is installed now, without booting",
		"up to date", sites.Renew)
	c.Long = `Lets virtual machines that run go on in the QEMU and with the virtiofsd that are installed now: without SELECTOR, those whose programs were replaced, as orrery status tells.
Processes, memory and connections stay; a machine stands still for a moment. Meanwhile the host needs the memory of one more machine. What cannot go over goes on where it was.`
	return c
}
