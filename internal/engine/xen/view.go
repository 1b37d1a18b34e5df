package xen

import (
	"orrery/internal/engine"
	"orrery/internal/problem"
	"orrery/internal/tree"
)

// OpenRoot opens the root of a running node as QEMU shows it to the guest. It does not include the
// node's volumes, nor what the guest itself has mounted, such as its /run. So the Runner of a node
// is no host.Viewer.
func (e *Engine) OpenRoot(ref engine.Ref) (*tree.Root, error) {
	m := e.machine(ref)
	if m.HasDisk() {
		return nil, problem.New(problem.Unable, "node %s boots a disk, whose files the host does not open", ref.Name).
			At(m.Path()).Try("do it in the node")
	}
	return engine.OpenAsProcess(ref, m.backend, m.Root())
}
