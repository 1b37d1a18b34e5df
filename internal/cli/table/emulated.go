package table

import (
	"fmt"
	"io"
	"slices"

	"orrery/internal/control/status"
	"orrery/internal/observe"
	"orrery/internal/plan"
)

// Emulated prints a warning, once for each host, about virtual machines that run in software
// emulation.
func Emulated(w io.Writer, rows []status.Node) {
	var hosts []string
	nodes := map[string][]string{}
	for _, r := range rows {
		if r.Accel != observe.TCG {
			continue
		}
		if nodes[r.Host] == nil {
			hosts = append(hosts, r.Host)
		}
		nodes[r.Host] = append(nodes[r.Host], r.Node)
	}
	for _, h := range hosts {
		fmt.Fprintf(w, "Warning: %s.\n", plan.EmulationWarning(h, slices.Compact(nodes[h])))
	}
}
