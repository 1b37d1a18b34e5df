package kvm

import (
	"os"
	"strings"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host/process"
	"orrery/internal/tree"
)

// views are what the host can reach of machines without their guests: roots, consoles, screens and
// control groups.
type views struct{ nodes *nodedir.Nodes }

// OpenRoot opens the root of a running node as virtiofsd shows it to the guest. It includes the node's
// volumes, but not what the guest itself has mounted, such as its /run. So the Runner of a node is
// no host.Viewer.
func (v views) OpenRoot(ref engine.Ref) (*tree.Root, error) {
	m := machineOf(v.nodes, ref)
	return engine.OpenAsProcess(ref, m.virtiofsdPID, "/.")
}

// Cgroup returns the node's control group.
func (v views) Cgroup(ref engine.Ref) string { return machineOf(v.nodes, ref).Group().Name() }

// virtiofsdPID returns the process id of the virtiofsd whose root is the node's, or 0 if there is none.
// That process is in namespaces of its own. Its parent, which waits outside, has the host's root.
func (m machine) virtiofsdPID() int {
	if !m.running() {
		return 0
	}
	return m.startingVirtiofsdPID()
}

// startingVirtiofsdPID is like virtiofsdPID for a machine that may not run yet.
func (m machine) startingVirtiofsdPID() int {
	for _, pid := range m.processes() {
		name, _ := os.ReadFile(process.Host.File(pid, "comm"))
		if process.Host.IsConfined(pid) && strings.HasPrefix(string(name), shareComm) {
			return pid
		}
	}
	return 0
}
