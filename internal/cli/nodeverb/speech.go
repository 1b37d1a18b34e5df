package nodeverb

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/speech"
	"orrery/internal/cli/verb"
	"orrery/internal/control/nodes"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// speechOn shows what nodes print: to programs as a list, otherwise as lines.
func speechOn(to verb.Output, of []*site.Node, grouped bool) nodes.Speech {
	if reply.Wanted(to.Out) {
		return speech.Reported(to.Out)
	}
	return speech.Prefixed(to.Out, to.Err, of, grouped)
}

// tally says on how many nodes something has succeeded, unless it was not done.
func tally(errs io.Writer, endings []nodes.Ending, err error) error {
	var status problem.Status
	if err != nil && !errors.As(err, &status) {
		return err
	}
	return speech.Tally(errs, endings)
}

func rawFlag(c *cobra.Command, raw *bool) {
	c.Flags().BoolVar(raw, "raw", false, "pass on terminal escape sequences, such as colours (default: show them as \\x1b)")
}
