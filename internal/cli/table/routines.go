package table

import (
	"fmt"
	"io"
	"time"

	"orrery/internal/control/status"
	"orrery/internal/observe/routine"
	"orrery/internal/text/sanitize"
)

// Routines prints how what the site file schedules went, after the nodes.
func Routines(w io.Writer, all []status.Routine, now time.Time) error {
	return below(w, "routines", all, func(r *status.Routine) string { return routineLine(r, now) })
}

// routineLine returns a line on a routine, or "" if there is nothing to say.
func routineLine(r *status.Routine, now time.Time) string {
	text := fmt.Sprintf("last %s %s", r.Name, ago(now.Sub(r.Done)))
	switch {
	case r.Name == routine.Watch && r.Failures == 0:
		return ""
	case r.Done.IsZero():
		text = "no " + r.Name + " yet"
	}
	switch {
	case r.Failures > 0:
		return fmt.Sprintf("%s, failed %s since: %s", text, times(r.Failures), sanitize.Line(r.Why))
	case r.Late:
		return fmt.Sprintf("%s, the next one was due %s: orrery up sets its timer again", text, ago(now.Sub(r.Next)))
	}
	return text
}

// times returns how often something happened.
func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}
