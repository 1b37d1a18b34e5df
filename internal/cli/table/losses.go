package table

import (
	"fmt"
	"io"
	"strings"

	"orrery/internal/plan/place"
	"orrery/internal/text/humanize"
)

// Losses prints the effect of each loss of hosts.
func Losses(w io.Writer, all []place.HostLoss) {
	for _, l := range all {
		fmt.Fprintf(w, "without %s: of %s, %d fit on the other hosts\n", strings.Join(l.Hosts, ", "),
			humanize.Plural(len(l.Moved)+len(l.Lost), "node"), len(l.Moved))
		for _, n := range l.Lost {
			fmt.Fprintf(w, "  %s does not fit: %s (%s)\n", n.Node, n.Why, n.Cure)
		}
		for _, c := range l.Crowded {
			fmt.Fprintf(w, "  %s\n", c)
		}
	}
}
