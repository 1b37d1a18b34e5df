package table

import (
	"fmt"
	"io"

	"orrery/internal/control/nodes"
)

// Moved prints where nodes are now.
func Moved(w io.Writer, site string, all []nodes.MovedNode, failed error) {
	if len(all) == 0 && failed == nil {
		fmt.Fprintf(w, "%s: nothing to do: all selected nodes are already on that host.\n", site)
	}
	for _, m := range all {
		switch {
		case m.Quarantine != "":
			fmt.Fprintf(w, "Release %s of %s moved to host %s with it, and is stopped there in quarantine.\n",
				m.Quarantine, m.Node, m.Host)
		case m.Healthy > 0:
			fmt.Fprintf(w, "%s is on host %s; it was away for %.1f s, and healthy after %.1f s.\n", m.Node, m.Host, m.Away,
				m.Healthy)
		case m.Away > 0:
			fmt.Fprintf(w, "%s is on host %s; it was away for %.1f s.\n", m.Node, m.Host, m.Away)
		default:
			fmt.Fprintf(w, "%s is on host %s.\n", m.Node, m.Host)
		}
	}
}
