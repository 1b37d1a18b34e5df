package kvm

import (
	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/engine/vm"
	"orrery/internal/host"
	"orrery/internal/host/process"
	"orrery/internal/image"
)

// Engine makes nodes with QEMU. It starts, changes, stops and destroys machines, and embeds types
// for everything else.
type Engine struct {
	*nodedir.Nodes // stopped nodes
	*programs      // engine.CapabilityProber
	*guests        // host.Runner
	views          // engine.RootOpener, HasConsole, HasScreen and Cgrouper
	freezer        // engine.Freezer and Flusher
	states         // engine.LiveUpgrader and MemorySaver
}

var (
	_ engine.Engine           = (*Engine)(nil)
	_ engine.StateReader      = (*Engine)(nil)
	_ engine.Replacer         = (*Engine)(nil)
	_ engine.Idmapper         = (*Engine)(nil)
	_ engine.Remounter        = (*Engine)(nil)
	_ engine.Injector         = (*Engine)(nil)
	_ engine.Sweeper          = (*Engine)(nil)
	_ engine.Freezer          = (*Engine)(nil)
	_ engine.Flusher          = (*Engine)(nil)
	_ engine.Layered          = (*Engine)(nil)
	_ engine.Migrator         = (*Engine)(nil)
	_ engine.CgroupProvider   = (*Engine)(nil)
	_ engine.RootOpener       = (*Engine)(nil)
	_ engine.LiveUpgrader     = (*Engine)(nil)
	_ engine.CapabilityProber = (*Engine)(nil)
	_ engine.ConsoleProvider  = (*Engine)(nil)
	_ engine.ScreenProvider   = (*Engine)(nil)

	_ engine.MemorySaver = (*Engine)(nil)
)

// New returns the engine that stores its nodes in dirs and uses the layers in store.
func New(dirs host.Dirs, store *image.Store) *Engine {
	nodes := &nodedir.Nodes{Dirs: dirs, Store: store, Engine: Name, Slots: nodedir.Slots, PlugsNIC: true}
	nodes.Running = func(ref engine.Ref) bool { return machineOf(nodes, ref).running() }
	p, g := programsOf(dirs), guestsOf(nodes)
	return &Engine{nodes, p, g, views{nodes}, freezer{g}, states{p, g}}
}

// Name is the engine's name in site files.
const Name = "kvm"

// machine is the virtual machine of one node.
type machine struct {
	vm.Machine
	former process.Set // the processes of the machine that this one replaces
}

func machineOf(nodes *nodedir.Nodes, ref engine.Ref) machine {
	return machine{Machine: vm.Of(nodes, ref)}
}

func (e *Engine) machine(ref engine.Ref) machine { return machineOf(e.Nodes, ref) }

// console returns the path of what the guest printed on its serial port during its last run.
func (m machine) console() string { return m.File("console.log") }
