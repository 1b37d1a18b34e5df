package observe

import (
	"fmt"
	"strings"

	"orrery/internal/text/sanitize"
)

// A DriftKind says of what kind something is that has drifted.
type DriftKind string

// The kinds of drift, in the order in which they are mended.
const (
	DriftProgram DriftKind = "program" // a file of the layers
	DriftFile    DriftKind = "file"    // a file that a role put there
	DriftService DriftKind = "service" // a unit that a role lets run
	DriftHealth  DriftKind = "health"  // a health check
	DriftNode    DriftKind = "node"    // the node as such
)

// A DriftHow says what has become of it.
type DriftHow string

// What can become of something.
const (
	Gone      DriftHow = "gone"
	Altered   DriftHow = "altered"
	Halted    DriftHow = "halted"    // a unit does not run, or fails again and again
	Unenabled DriftHow = "unenabled" // a unit runs, and will not after a boot
	Failing   DriftHow = "failing"   // a health check
	Silent    DriftHow = "silent"    // it could not be asked, or looked into
)

// A Drift is one thing of a running node that is no longer as its layers and roles made it.
type Drift struct {
	Kind    DriftKind `json:"kind"`
	How     DriftHow  `json:"how"`
	Node    string    `json:"node"`
	Subject string    `json:"subject"`        // the path, the unit, the health check
	Role    string    `json:"role,omitempty"` // whose it is; "": no role's alone
	Want    string    `json:"expected"`
	Found   string    `json:"found"`
}

// String says it in words, without the node: "service web.service is stopped, not running".
func (d Drift) String() string {
	return sanitize.Line(fmt.Sprintf("%s %s is %s, not %s", d.Kind, d.Subject, d.Found, d.Want))
}

// Sick reports whether it means that the node is not healthy.
func (d Drift) Sick() bool { return d.Kind == DriftHealth || d.Kind == DriftNode }

// Disturbs reports whether the node does not serve for a while when it is mended.
func (d Drift) Disturbs() bool {
	switch d.Kind {
	case DriftService:
		return false // it does not run, or goes on running
	case DriftProgram:
		return d.How != Gone // what runs goes on with what it has open
	}
	return true
}

// Drifts says in words what has drifted, at most three of it.
func Drifts(all []Drift) string {
	var words []string
	for _, d := range all[:min(3, len(all))] {
		words = append(words, d.String())
	}
	if more := len(all) - len(words); more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(words, "; ")
}
