package table

import (
	"fmt"
	"io"
	"strings"
	"time"

	"orrery/internal/journal"
	"orrery/internal/text/humanize"
)

// Journal prints entries: the runs with their results, and the steps that failed, or all steps. If
// there are several hosts, each line names its host.
func Journal(to io.Writer, entries []journal.Entry, steps bool) {
	for _, e := range entries {
		when := e.Time.Local().Format(time.DateTime)
		if len(e.Hosts) > 0 {
			when += "  " + humanize.List(e.Hosts, 4)
		}
		switch {
		case e.Kind == "begin":
			fmt.Fprintf(to, "%s  %s: %s\n", when, indent(e.Who), indent(e.Command))
			printState(to, when, e.State)
		case e.Kind == "end":
			fmt.Fprintf(to, "%s  ended after %.1f s: %s\n", when, e.Seconds, indent(e.Result))
		case steps || e.Result != "done":
			fmt.Fprintf(to, "%s    %s: %s (%.2f s)\n", when, indent(e.Step), indent(e.Result), e.Seconds)
		}
	}
}

// printState prints the state of a run that has no end.
func printState(to io.Writer, when, state string) {
	switch state {
	case journal.Running:
		fmt.Fprintf(to, "%s  has not ended yet: still running\n", when)
	case journal.Killed:
		fmt.Fprintf(to, "%s  did not end: killed, or its connection or host failed\n", when)
	}
}

// indent indents the lines of a text, so that they cannot be mistaken for lines of the journal.
func indent(text string) string { return strings.ReplaceAll(text, "\n", "\n    ") }
