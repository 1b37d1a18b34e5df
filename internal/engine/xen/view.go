package xen

import (
	"fmt"

	"orrery/internal/engine"
	"orrery/internal/tree"
)

// View opens the root of a running node, as QEMU has it and gives it to the guest: without its volumes and what the guest itself has mounted, such as its /run. So the
// Runner of a node is no host.Viewer.
func (e *Engine) View(ref engine.Ref) (*tree.Root, error) {
	m := e.machine(ref)
	pid := m.backend()
	if pid == 0 {
		return nil, engine.NotRunning(ref)
	}
	root, err := tree.Open(fmt.Sprintf("/proc/%d/root%s", pid, m.Root()))
	if err != nil {
		return nil, err
	}
	if m.backend() != pid { // it ended meanwhile, and the number may be another's
		root.Close() //nolint:errcheck // nothing was written
		return nil, engine.NotRunning(ref)
	}
	return root, nil
}
