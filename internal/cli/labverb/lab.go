// Package labverb has the verbs of `orrery lab`, which measure what virtualization costs, and a sender and a receiver of
// SPEAD heaps, by which the lab measures capture.
package labverb

import (
	"github.com/spf13/cobra"

	"orrery/internal/cli/verb"
)

func Lab(call *verb.Call) *cobra.Command {
	c := verb.Group("lab", "Measure what virtualization costs on this host",
		run(call), list(call), report(call), compare(call), history(call), check(call), doctor(call))
	c.Long = `Runs the same tests in several settings in turn: on the bare host, and in containers on each kind of network, with and without limits. It reports
what differs, by how much, and how far you can trust that. Each run makes a bundle: a directory with the raw samples and a report.`
	return c
}
