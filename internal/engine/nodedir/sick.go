package nodedir

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"

	"orrery/internal/observe"
	"orrery/internal/tree/rawfile"
)

// Files with results that are not in the record, because what writes them must not overwrite what a
// run records at the same time. A health check, for example, holds no lock.
const (
	sicknessFile = "sick.json"    // why a node was unhealthy when it was last probed
	healthFile   = "healthy.json" // when a node was healthy when it was last probed
	failureFile  = "failed.json"  // why the last step of a run failed on the node
)

// Results are the stored results of probes and steps of a node.
type Results struct{ dir Dir }

// Results returns the results of the node.
func (d Dir) Results() Results { return Results{d} }

// StoreSickness stores the result of a probe that found the node unhealthy, or removes the stored
// result if s is nil.
func (r Results) StoreSickness(s *observe.HealthFailure) error {
	if s == nil {
		return r.remove(sicknessFile)
	}
	return r.dir.write(sicknessFile, s)
}

// StoreHealth stores that a probe found the node healthy. Proven is the time of the proof that the
// node had then.
func (r Results) StoreHealth(at, proven time.Time) error {
	if err := r.StoreSickness(nil); err != nil {
		return err
	}
	return r.dir.write(healthFile, probeSuccess{at, proven})
}

// ForgetProbe removes the result of the last probe.
func (r Results) ForgetProbe() error {
	if err := r.remove(sicknessFile); err != nil {
		return err
	}
	return r.remove(healthFile)
}

// StoreFailure stores why a step failed, or removes the stored failure if f is nil.
func (r Results) StoreFailure(f *observe.StepFailure) error {
	if f == nil {
		return r.remove(failureFile)
	}
	return r.dir.write(failureFile, f)
}

// A probeSuccess is the result of a probe that found the node healthy.
type probeSuccess struct {
	At     time.Time `json:"at"`
	Proven time.Time `json:"proven,omitzero"`
}

// Read sets the stored results of probes and steps in a node. It ignores a probe if the
// node's health was proven later. It does not compare which time is later, because the clock may
// have been ahead for one of them.
func (r Results) Read(n *observe.Node) {
	var sick observe.HealthFailure
	var healthy probeSuccess
	var failed observe.StepFailure
	switch {
	case r.read(sicknessFile, &sick) && sick.Proven.Equal(n.ProvenAt):
		n.Sick, n.ProbedAt = &sick, sick.At
	case r.read(healthFile, &healthy) && healthy.Proven.Equal(n.ProvenAt):
		n.ProbedAt = healthy.At
	}
	if (!n.Configured || n.Proven == "") && r.read(failureFile, &failed) {
		n.Failed = &failed
	}
}

// read reads a stored result, and reports whether there is one.
func (r Results) read(name string, into any) bool {
	text, err := rawfile.ReadFile(r.dir.File(name))
	return err == nil && json.Unmarshal(text, into) == nil
}

// remove removes a file of a node, if it exists.
func (r Results) remove(name string) error {
	if err := os.Remove(r.dir.File(name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
