package cli

import (
	"github.com/spf13/cobra"

	"orrery/internal/cli/labverb"
	"orrery/internal/cli/verb"
)

func labVerb(call *verb.Call) *cobra.Command {
	c := verb.Group("lab", "Measure what virtualization costs on this host",
		labRunVerb(call), labListVerb(call), labReportVerb(call), labCompareVerb(call), labverb.History(call.Session, call.Out), labverb.Check(call.Session, call.Out), labDoctorVerb(call))
	c.Long = `Runs the same tests in several settings in turn: on the bare host, and in containers on each kind of network, with and without limits. It reports
what differs, by how much, and how far you can trust that. Each run makes a bundle: a directory with the raw samples and a report.`
	return c
}
