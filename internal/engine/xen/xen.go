package xen

import (
	"os"
	"strconv"
	"strings"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/engine/vm"
	"orrery/internal/host"
	"orrery/internal/host/process"
	"orrery/internal/host/qemu"
	"orrery/internal/host/xl"
	"orrery/internal/image"
	"orrery/internal/observe"
	"orrery/internal/site"
)

// Engine makes nodes with xl. Its embedded Nodes handle stopped nodes.
type Engine struct {
	*nodedir.Nodes
	agents *vm.Agents
	terminator
	lacks func() error // returns what this host lacks to run guests; variable, so that tests can change it
}

var (
	_ engine.Engine             = (*Engine)(nil)
	_ engine.StateReader        = (*Engine)(nil)
	_ engine.Replacer           = (*Engine)(nil)
	_ engine.Idmapper           = (*Engine)(nil)
	_ engine.Injector           = (*Engine)(nil)
	_ engine.Sweeper            = (*Engine)(nil)
	_ engine.Freezer            = (*Engine)(nil)
	_ engine.Flusher            = (*Engine)(nil)
	_ engine.Layered            = (*Engine)(nil)
	_ engine.RootOpener         = (*Engine)(nil)
	_ engine.ConsoleProvider    = (*Engine)(nil)
	_ engine.MemoryPoolProvider = (*Engine)(nil)

	_ engine.MemorySaver = (*Engine)(nil)
)

// New returns the engine that stores its nodes in dirs and uses the layers in store.
func New(dirs host.Dirs, store *image.Store) *Engine {
	nodes := &nodedir.Nodes{Dirs: dirs, Store: store, Engine: Name, Slots: nodedir.Slots, ByHeader: true}
	agents := &vm.Agents{Nodes: nodes}
	e := &Engine{nodes, agents, terminator{agents, xl.CheckDom0}, checkRequirements}
	e.Running = func(ref engine.Ref) bool { return e.machine(ref).running() }
	return e
}

// Name is the engine's name in site files.
const Name = site.Xen

// checkRequirements returns an error that names the first requirement of Xen guests that this host does not
// meet, or nil.
func checkRequirements() error {
	if err := xl.CheckRequirements(); err != nil {
		return err
	}
	_, err := qemu.Guest()
	return err
}

// Capabilities returns what guests of Xen can do on this host, if they can run.
func (e *Engine) Capabilities() observe.Capabilities {
	caps := observe.Capabilities{MoveNIC: true, Keep: true}
	if err := e.lacks(); err != nil {
		caps.Unable = vm.AsLack(err)
		return caps
	}
	caps.Accel = accel()
	return caps
}

// accel returns what runs guests: Xen with the processor, or TCG if Xen itself runs in emulation.
func accel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err == nil && emulated(string(text)) {
		return observe.TCG
	}
	return observe.Xen
}

// emulated reports from /proc/cpuinfo whether QEMU emulates the processor. It recognizes the names
// of QEMU's own processor models.
func emulated(cpuinfo string) bool {
	for line := range strings.Lines(cpuinfo) {
		if name, model, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.HasPrefix(strings.TrimSpace(model), "QEMU ")
		}
	}
	return false
}

// machine is the domain of one node.
type machine struct{ vm.Machine }

func (e *Engine) machine(ref engine.Ref) machine { return machine{vm.Of(e.Nodes, ref)} }

// domain returns Xen's name of the node. The engine never touches domains with other names.
func (m machine) domain() string { return "orrery-" + m.Ref.Site + "-" + strconv.Itoa(m.Ref.ID) }

// qemuComm is part of the kernel's names of QEMU processes (proc_pid_comm(5), up to 15 bytes):
// qemu-system-i38, xen-qemu-system.
const qemuComm = "qemu-system"

// backend returns the process id of QEMU, or 0 if the node does not run.
func (m machine) backend() int {
	return findByName(m.Group().Processes(), func(comm string) bool { return strings.Contains(comm, qemuComm) })
}

// watched reports whether the xl that created the domain still watches it, to end it when its guest
// has shut down.
func (m machine) watched() bool {
	return findByName(m.Group().Processes(), func(comm string) bool { return comm == "xl" }) != 0
}

// findByName returns the first process with a name that matches, or 0 if there is none.
func findByName(all []int, such func(comm string) bool) int {
	for _, pid := range all {
		if name, err := os.ReadFile(process.Host.File(pid, "comm")); err == nil && such(strings.TrimSpace(string(name))) {
			return pid
		}
	}
	return 0
}

func (m machine) running() bool { return m.backend() != 0 }

// Runner runs commands in a running node by its agent. A node that boots a disk has no agent.
func (e *Engine) Runner(ref engine.Ref) host.Runner {
	if e.machine(ref).HasDisk() {
		return unsupportedRunner(ref, e.Running)
	}
	return e.agents.Runner(ref)
}
