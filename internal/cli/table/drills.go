package table

import (
	"fmt"
	"io"
	"time"

	"orrery/internal/observe/drill"
	"orrery/internal/text/sanitize"
)

// Drills prints the last drills of services, after the nodes.
func Drills(w io.Writer, all []drill.Result, now time.Time) error {
	return below(w, "drills", all, func(r *drill.Result) string { return Drill(r, now) })
}

// Drill returns a line on the last drill of a service.
func Drill(r *drill.Result, now time.Time) string {
	return sanitize.Line(fmt.Sprintf("service %s: last drill %s: %s", r.Service, ago(now.Sub(r.At)), r))
}
