// Package kvm makes nodes as virtual machines with QEMU: by KVM where this host's processor runs guests, else in software emulation.
//
// A machine's root is the overlay that a container of the same node would have, mounted in a namespace of its own and given to the guest by virtiofsd, which has
// the node's range of user ids and no others. So nothing is converted, and what nodedir does to nodes that do not run holds for machines, too. The kernel is one
// more layer; with an initramfs in which orrery-guest is all that runs, QEMU starts it directly (package image/kernel).
//
// QEMU and virtiofsd of a node are in its control group and nowhere else, so that the group tells whether a machine runs, whoever started it. All that they share with
// the host is handed to them open: sockets, taps, the console's log. Commands go to the agent of the guest, by package wire.
package kvm

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"sync"

	"orrery/internal/engine"
	"orrery/internal/engine/agents"
	"orrery/internal/engine/cgroup"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/host/qemu"
	"orrery/internal/image"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/wire"
)

// Engine makes nodes with QEMU. What is done to one that does not run, Nodes do.
type Engine struct {
	*nodedir.Nodes
	agents agents.Agents
	logins logins
	accel  func() (accel string, why error)
}

var (
	_ engine.Engine    = (*Engine)(nil)
	_ engine.Keeper    = (*Engine)(nil)
	_ engine.Idmapper  = (*Engine)(nil)
	_ engine.Remounter = (*Engine)(nil)
	_ engine.Injector  = (*Engine)(nil)
	_ engine.Sweeper   = (*Engine)(nil)
	_ engine.Freezer   = (*Engine)(nil)
	_ engine.Flusher   = (*Engine)(nil)
	_ engine.Layered   = (*Engine)(nil)
	_ engine.Grouped   = (*Engine)(nil)
	_ engine.Viewer    = (*Engine)(nil)
	_ engine.Renewer   = (*Engine)(nil)
	_ engine.Trier     = (*Engine)(nil)
	_ engine.Consoled  = (*Engine)(nil)

	_ engine.Rememberer = (*Engine)(nil)
)

// New gives the engine that keeps its nodes in dirs and takes layers from store.
func New(dirs host.Dirs, store *image.Store) *Engine {
	e := &Engine{Nodes: &nodedir.Nodes{Dirs: dirs, Store: store, Engine: Name, Slots: nodedir.Slots}, accel: sync.OnceValues(qemu.Accel)}
	e.Running = func(ref engine.Ref) bool { return e.machine(ref).running() }
	return e
}

// Name is what site files call this engine.
const Name = "kvm"

// Capabilities says what machines can do here, if they can run.
func (e *Engine) Capabilities() observe.Capabilities {
	able := capable
	if lack := qemu.Lacks(); lack != nil {
		able.Unable = lackOf(lack)
	}
	return able
}

var capable = observe.Capabilities{MoveNIC: true, Remount: true, PlugDisk: true, Keep: true}

// Try says what runs machines here, and whether QEMU is too old for that.
func (e *Engine) Try(ctx context.Context) observe.Capabilities {
	able := capable
	if lack := e.versions().Lacks(ctx); lack != nil {
		able.Unable = lackOf(lack)
		return able
	}
	if lack := e.versions().Stuck(ctx); lack != nil {
		able.Stuck = lackOf(lack)
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
	nodedir.Dir
	ref engine.Ref
	run string // directory of what is there while it runs: root's

	former crew // of a machine whose place it takes
}

func (e *Engine) machine(ref engine.Ref) machine {
	return machine{Dir: e.Dir(ref), ref: ref, run: filepath.Join(e.Dirs.Run, "vm", ref.Site, strconv.Itoa(ref.ID))}
}

func (m machine) group() cgroup.Group { return cgroup.Of(m.ref.Site, m.ref.ID) }

// console is what the guest printed on its serial port when it last ran.
func (m machine) console() string { return m.File("console.log") }

// starting is a file that is there until the node has been started. One whose starter was killed may come up or not.
func (m machine) starting() string { return m.File("starting") }

// stopping is a file that is there while the node shuts down.
func (m machine) stopping() string { return m.File("stopping") }

// freezing is a file that is there from before the node is frozen by us until after it goes on.
func (m machine) freezing() string { return m.File("freezing") }

// Cgroup gives the node's control group.
func (e *Engine) Cgroup(ref engine.Ref) string { return e.machine(ref).group().Name() }

// Runner runs commands in a running node: by its agent, or by its SSH server if it boots a disk.
func (e *Engine) Runner(ref engine.Ref) host.Runner {
	if e.machine(ref).HasDisk() {
		return visitor{e, ref}
	}
	return agents.Runner{Name: ref.Name, Agent: func(ctx context.Context) (*wire.Client, error) { return e.client(ctx, ref) }}
}

// client gives the connection of this process to the agent of a running node.
func (e *Engine) client(ctx context.Context, ref engine.Ref) (*wire.Client, error) {
	m := e.machine(ref)
	if !m.running() {
		return nil, engine.NotRunning(ref)
	}
	return e.agents.Of(ctx, m.ref, m.run)
}

// lackOf says what a host lacks for virtual machines.
func lackOf(err error) observe.Lack {
	var p *problem.Problem
	if errors.As(err, &p) {
		return observe.Lack{What: p.What, Cure: p.Cure}
	}
	return observe.Lack{What: err.Error()}
}
