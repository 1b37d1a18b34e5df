package table

import (
	"fmt"
	"io"

	"orrery/internal/plan/place"
)

// Moves prints which nodes would move where, and why, and which cannot.
func Moves(w io.Writer, m place.Moves) {
	for _, move := range m.Moves {
		fmt.Fprintf(w, "  %s: %s → %s, because %s\n", move.Node, move.From, move.To, move.Why)
	}
	for _, n := range m.Stuck {
		fmt.Fprintf(w, "  %s stays: %s (%s)\n", n.Node, n.Why, n.Cure)
	}
}
