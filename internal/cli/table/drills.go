package table

import (
	"fmt"
	"io"
	"time"

	"orrery/internal/cli/reply"
	"orrery/internal/observe/drill"
	"orrery/internal/text/sanitize"
)

// Drills prints the last drills of services, after the nodes.
func Drills(w io.Writer, all []drill.Result, now time.Time) error {
	if len(all) == 0 {
		return nil
	}
	if r, ok := w.(*reply.Reply); ok {
		return r.Add("drills", all)
	}
	for i := range all {
		fmt.Fprintln(w, Drill(&all[i], now))
	}
	return nil
}

// Drill returns a line on the last drill of a service.
func Drill(r *drill.Result, now time.Time) string {
	return sanitize.Line(fmt.Sprintf("service %s: last drill %s: %s", r.Service, ago(now.Sub(r.At)), r))
}
