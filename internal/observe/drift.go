package observe

import (
	"fmt"
	"strings"

	"orrery/internal/text/sanitize"
)

// A DriftKind is the kind of a subject that has drifted.
type DriftKind string

// The kinds of drift, in the order of their repair.
const (
	DriftProgram DriftKind = "program" // a file of the layers
	DriftFile    DriftKind = "file"    // a file that a role installed
	DriftService DriftKind = "service" // a unit that a role runs
	DriftHealth  DriftKind = "health"  // a health check
	DriftNode    DriftKind = "node"    // the node itself
)

// A DriftState is the state of a subject that has drifted.
type DriftState string

// The states of a drifted subject.
const (
	Gone         DriftState = "gone"
	Altered      DriftState = "altered"
	NotRunning   DriftState = "halted"    // a unit does not run, or fails repeatedly
	NotEnabled   DriftState = "unenabled" // a unit runs, but will not start at boot
	Failing      DriftState = "failing"   // a health check fails
	Unresponsive DriftState = "silent"    // the node did not answer, or could not be inspected
)

// A Drift is one part of a running node that differs from its layers and roles.
type Drift struct {
	Kind    DriftKind  `json:"kind"`
	How     DriftState `json:"how"`
	Node    string     `json:"node"`
	Subject string     `json:"subject"` // path, unit or health check
	// role that it belongs to, or "" if it belongs to no single role
	Role  string `json:"role,omitempty"`
	Want  string `json:"expected"`
	Found string `json:"found"`
}

// String returns a description without the node: "service web.service is stopped, not running".
func (d Drift) String() string {
	return sanitize.Line(fmt.Sprintf("%s %s is %s, not %s", d.Kind, d.Subject, d.Found, d.Want))
}

// Unhealthy reports whether the drift means that the node is unhealthy.
func (d Drift) Unhealthy() bool { return d.Kind == DriftHealth || d.Kind == DriftNode }

// Disrupts reports whether its repair interrupts the node's service.
func (d Drift) Disrupts() bool {
	switch d.Kind {
	case DriftService:
		return false // it does not run, or keeps running
	case DriftProgram:
		return d.How != Gone // running programs keep the files that they have open
	}
	return true
}

// DescribeDrifts describes at most three drifts, and the number of the others.
func DescribeDrifts(all []Drift) string {
	var words []string
	for _, d := range all[:min(3, len(all))] {
		words = append(words, d.String())
	}
	if more := len(all) - len(words); more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(words, "; ")
}
