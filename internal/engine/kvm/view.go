package kvm

import (
	"os"
	"strings"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host/process"
	"orrery/internal/tree"
)

// views are what the host reaches of machines without their guests: roots, consoles, screens, control groups.
type views struct{ nodes *nodedir.Nodes }

// View opens the root of a running node, as virtiofsd has it and gives it to the guest: with the
// node's volumes, and without what the guest itself has mounted, such as its /run. So the Runner of
// a node is no host.Viewer.
func (v views) View(ref engine.Ref) (*tree.Root, error) {
	m := machineOf(v.nodes, ref)
	return engine.OpenView(ref, m.sharer, "/.")
}

// Cgroup returns the node's control group.
func (v views) Cgroup(ref engine.Ref) string { return machineOf(v.nodes, ref).Group().Name() }

// sharer returns the process of virtiofsd whose root is that of the node; 0 if there is none. It is
// alone in namespaces that it has made; the one that waits for it outside of them has the host's
// root.
func (m machine) sharer() int {
	if !m.running() {
		return 0
	}
	return m.insideSharer()
}

// insideSharer is the same of a machine that does not run yet.
func (m machine) insideSharer() int {
	ours, err := os.Readlink(process.Host.File(os.Getpid(), "ns/pid"))
	if err != nil {
		return 0
	}
	for _, pid := range m.processes() {
		name, _ := os.ReadFile(process.Host.File(pid, "comm"))
		its, err := os.Readlink(process.Host.File(pid, "ns/pid"))
		if err == nil && its != ours && strings.HasPrefix(string(name), shareComm) {
			return pid
		}
	}
	return 0
}
