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

// StoreSickness stores the result of a probe that found the node unhealthy, or removes the stored
// result if s is nil.
func (d Dir) StoreSickness(s *observe.HealthFailure) error {
	if s == nil {
		return d.remove(sicknessFile)
	}
	return d.write(sicknessFile, s)
}

// StoreHealth stores that a probe found the node healthy. Proven is the time of the proof that the
// node had then.
func (d Dir) StoreHealth(at, proven time.Time) error {
	if err := d.StoreSickness(nil); err != nil {
		return err
	}
	return d.write(healthFile, probeSuccess{at, proven})
}

// ForgetProbe removes the result of the last probe.
func (d Dir) ForgetProbe() error { return errors.Join(d.remove(sicknessFile), d.remove(healthFile)) }

// StoreFailure stores why a step failed, or removes the stored failure if f is nil.
func (d Dir) StoreFailure(f *observe.StepFailure) error {
	if f == nil {
		return d.remove(failureFile)
	}
	return d.write(failureFile, f)
}

// A probeSuccess is the result of a probe that found the node healthy.
type probeSuccess struct {
	At     time.Time `json:"at"`
	Proven time.Time `json:"proven,omitzero"`
}

// ReadResults sets the stored results of probes and steps in a node. It ignores a probe if the
// node's health was proven later. It does not compare which time is later, because the clock may
// have been ahead for one of them.
func (d Dir) ReadResults(n *observe.Node) {
	var sick observe.HealthFailure
	var healthy probeSuccess
	var failed observe.StepFailure
	switch {
	case d.readResult(sicknessFile, &sick) && sick.Proven.Equal(n.ProvenAt):
		n.Sick, n.ProbedAt = &sick, sick.At
	case d.readResult(healthFile, &healthy) && healthy.Proven.Equal(n.ProvenAt):
		n.ProbedAt = healthy.At
	}
	if (!n.Configured || n.Proven == "") && d.readResult(failureFile, &failed) {
		n.Failed = &failed
	}
}

// readResult reads a stored result, and reports whether there is one.
func (d Dir) readResult(name string, into any) bool {
	text, err := rawfile.ReadFile(d.File(name))
	return err == nil && json.Unmarshal(text, into) == nil
}

// remove removes a file of a node, if it exists.
func (d Dir) remove(name string) error {
	if err := os.Remove(d.File(name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
