package table

import (
	"fmt"
	"io"
	"time"

	"orrery/internal/control/hosts"
)

// Hosts prints which hosts answer, and what they have.
func Hosts(w io.Writer, all []hosts.State) error {
	return List(w, all, "HOST\tADDRESS\tNAME\tANSWERS\tNODES", func(h hosts.State) []any {
		if !h.Answers {
			return []any{h.Host, h.Address, "-", "no", "unknown"}
		}
		answers := "yes" // this machine
		if h.Seconds > 0 {
			answers = "in " + time.Duration(h.Seconds*float64(time.Second)).Round(100*time.Microsecond).String()
		}
		nodes := fmt.Sprintf("%d of %d run", h.Running, h.Nodes)
		if h.Drained != "" {
			nodes += ", drained by " + h.Drained
		}
		return []any{h.Host, h.Address, h.Hostname, answers, nodes}
	})
}

// HostsFit prints which hosts are fit for nodes.
func HostsFit(w io.Writer, all []hosts.State) error {
	return List(w, all, "HOST\tADDRESS\tSTATE", func(h hosts.State) []any {
		switch {
		case h.IsFit():
			return []any{h.Host, h.Address, "fit"}
		case !h.Answers:
			return []any{h.Host, h.Address, "unreachable"}
		}
		return []any{h.Host, h.Address, "unfit"}
	})
}

// HostProblems prints the problems of hosts, and reports whether there are none.
func HostProblems(w io.Writer, all []hosts.State) (well bool) {
	well = true
	for i := range all {
		h := &all[i]
		well = well && h.IsFit()
		for _, text := range h.Wrong {
			fmt.Fprintf(w, "orrery: %s: %s\n", h.Host, text)
		}
		for _, f := range h.Lacks {
			fmt.Fprintf(w, "orrery: %s: %s: %s (%s)\n", h.Host, f.Name, f.Value, f.Fix)
		}
	}
	return well
}
