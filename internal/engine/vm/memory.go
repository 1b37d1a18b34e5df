package vm

import (
	"os"

	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// Memory returns the path of the saved state from which the machine resumes at its next start
// instead of booting. The state is not trusted, because a guest controls its contents.
func (m Machine) Memory() string { return m.File("memory") }

// ResumeFrom makes the next start of the machine resume from a state, or boot if file is "".
func (m Machine) ResumeFrom(file string) error {
	if err := os.RemoveAll(m.Memory()); err != nil || file == "" {
		return err
	}
	return os.Link(file, m.Memory())
}

// MaxStateBytes returns the maximum size of a machine's state: the memory of its guest and the
// state of its devices.
func MaxStateBytes(n *spec.Node) int64 { return n.GuestMemory()*5/4 + 64<<20 }

// MemoryProblem returns the problem that the memory of the machine cannot be saved.
func (m Machine) MemoryProblem(err error) *problem.Problem {
	return problem.New(problem.Failed, "the memory of node %s cannot be saved", m.Ref.Name).At(m.Path()).Because(err).
		Try("take the snapshot without --memory")
}
