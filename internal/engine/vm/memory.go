package vm

import (
	"os"

	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// Memory is the file with the state from which the machine goes on when it is started next, instead
// of booting. The state is what a guest makes of it.
func (m Machine) Memory() string { return m.File("memory") }

// Recall lets the machine go on from a state when it is started next, or boot if the file is "".
func (m Machine) Recall(file string) error {
	if err := os.RemoveAll(m.Memory()); err != nil || file == "" {
		return err
	}
	return os.Link(file, m.Memory())
}

// MaxStateBytes bounds the state of a machine: the memory of its guest, and what its devices have.
func MaxStateBytes(n *spec.Node) int64 { return n.GuestMemory()*5/4 + 64<<20 }

// MemoryProblem says why the memory of the machine cannot be kept.
func (m Machine) MemoryProblem(err error) *problem.Problem {
	return problem.New(problem.Failed, "the memory of node %s cannot be kept", m.Ref.Name).At(m.Path()).Because(err).
		Try("take the snapshot without --memory")
}
