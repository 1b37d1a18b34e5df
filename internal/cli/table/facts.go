package table

import (
	"fmt"
	"io"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/screen"
	"orrery/internal/host/doctor"
)

// Facts prints facts about a host as JSON, or as text with the cure for each problem.
func Facts(w io.Writer, facts doctor.Facts) error {
	if reply.IsJSON(w) {
		return reply.JSON(w, facts)
	}
	width := 0
	for _, f := range facts {
		width = max(width, len(f.Name))
	}
	for _, f := range facts {
		mark, as := "ok", screen.Good
		if !f.OK {
			mark, as = "--", screen.Warn
			if f.Level == doctor.Required {
				mark, as = "NO", screen.Bad
			}
		}
		screen.Paint(w, mark, as)
		if _, err := fmt.Fprintf(w, "  %-*s  %s\n", width, f.Name, f.Value); err != nil {
			return err
		}
		if !f.OK && f.Fix != "" {
			fmt.Fprintf(w, "%*s    cure: %s\n", width+4, "", f.Fix)
		}
	}
	return nil
}
