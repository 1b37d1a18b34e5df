package kvm

import (
	"context"
	"path/filepath"
	"sync"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/engine/vm"
	"orrery/internal/host"
	"orrery/internal/host/login"
	"orrery/internal/host/process"
	"orrery/internal/host/qemu"
	"orrery/internal/image"
	"orrery/internal/observe"
	"orrery/internal/problem"
)

// Engine makes nodes with QEMU. What is done to one that does not run, Nodes do.
type Engine struct {
	*nodedir.Nodes
	agents vm.Agents
	logins vm.Connections[*login.Client]
	accel  func() (accel string, why error)
}

var (
	_ engine.Engine    = (*Engine)(nil)
	_ engine.Glancer   = (*Engine)(nil)
	_ engine.Keeper    = (*Engine)(nil)
	_ engine.Idmapper  = (*Engine)(nil)
	_ engine.Remounter = (*Engine)(nil)
	_ engine.Injector  = (*Engine)(nil)
	_ engine.Sweeper   = (*Engine)(nil)
	_ engine.Freezer   = (*Engine)(nil)
	_ engine.Flusher   = (*Engine)(nil)
	_ engine.Layered   = (*Engine)(nil)
	_ engine.Receiver  = (*Engine)(nil)
	_ engine.Grouped   = (*Engine)(nil)
	_ engine.Viewer    = (*Engine)(nil)
	_ engine.Renewer   = (*Engine)(nil)
	_ engine.Trier     = (*Engine)(nil)
	_ engine.Consoled  = (*Engine)(nil)
	_ engine.Screened  = (*Engine)(nil)

	_ engine.Rememberer = (*Engine)(nil)
)

// New returns the engine that keeps its nodes in dirs and takes layers from store.
func New(dirs host.Dirs, store *image.Store) *Engine {
	e := &Engine{Nodes: &nodedir.Nodes{Dirs: dirs, Store: store, Engine: Name, Slots: nodedir.Slots, PlugsNIC: true}, accel: sync.OnceValues(qemu.Accel)}
	e.agents.Nodes = e.Nodes
	e.Running = func(ref engine.Ref) bool { return e.machine(ref).running() }
	return e
}

// Name is what site files call this engine.
const Name = "kvm"

// Capabilities says what machines can do here, if they can run.
func (e *Engine) Capabilities() observe.Capabilities {
	able := capable
	if lack := qemu.Lacks(); lack != nil {
		able.Unable = vm.LackOf(lack)
	}
	return able
}

var capable = observe.Capabilities{MoveNIC: true, Remount: true, PlugDisk: true, PlugNIC: true, Keep: true, Move: true}

// Try says what runs machines here, and whether QEMU is too old for that.
func (e *Engine) Try(ctx context.Context) observe.Capabilities {
	able := capable
	if lack := e.versions().Lacks(ctx); lack != nil {
		able.Unable = vm.LackOf(lack)
		return able
	}
	if lack := e.versions().Stuck(ctx); lack != nil {
		able.Stuck = vm.LackOf(lack)
	}
	able.Accel, _ = e.accel()
	able.Models = e.versions().Models(ctx)
	return able
}

// versions of programs are kept: a command that looks at a host asks none again.
func (e *Engine) versions() qemu.Versions {
	return qemu.Versions{File: filepath.Join(e.Dirs.Run, "programs.json")}
}

// machine is one node as QEMU runs it.
type machine struct {
	vm.Machine
	former process.Crew // of a machine whose place it takes
}

func (e *Engine) machine(ref engine.Ref) machine {
	return machine{Machine: vm.Of(e.Nodes, ref)}
}

// console is what the guest printed on its serial port when it last ran.
func (m machine) console() string { return m.File("console.log") }

// Cgroup returns the node's control group.
func (e *Engine) Cgroup(ref engine.Ref) string { return e.machine(ref).Group().Name() }

// Runner runs commands in a running node: by its agent, or by its SSH server if it boots a disk.
func (e *Engine) Runner(ref engine.Ref) host.Runner {
	if e.machine(ref).HasDisk() {
		return vm.By(func(ctx context.Context) (host.Runner, error) { return e.visit(ctx, ref) })
	}
	return vm.By(func(context.Context) (host.Runner, error) {
		if e.machine(ref).rootless() {
			return nil, problem.New(problem.Failed, "node %s: virtiofsd, which shows it its root, has ended", ref.Name).
				At(ref.Site).Try("orrery restart %s", ref.Name)
		}
		return e.agents.Runner(ref), nil
	})
}
