// Package xen makes nodes as guests of Xen, on a host that is its Dom0, by Xen's own toolstack (package host/xl).
//
// A guest's root is the overlay that a container of the same node would have, mounted in a namespace of its own and given to the guest by 9p; what nodedir does to nodes
// that do not run holds for guests, too. The directories that a node sees beside its root are each offered by 9p under a name of their own.
//
// The toolstack starts a QEMU for each domain, which serves 9p and the ports of the agent. What is started in its place is this program, which confines itself to what
// the node may have of this host and becomes that QEMU (confine.Backend). It is in the node's control group and nowhere else, so that the group tells whether a node
// runs, whoever started it; without its root, which QEMU gives it, a guest is as good as dead.
package xen

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"orrery/internal/engine"
	"orrery/internal/engine/agents"
	"orrery/internal/engine/cgroup"
	"orrery/internal/engine/nodedir"
	"orrery/internal/engine/process"
	"orrery/internal/host"
	"orrery/internal/host/qemu"
	"orrery/internal/host/xl"
	"orrery/internal/image"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/wire"
)

// Engine makes nodes with xl. What is done to one that does not run, Nodes do.
type Engine struct {
	*nodedir.Nodes
	agents agents.Agents
	lacks  func() error // what this host lacks; but in tests
}

var (
	_ engine.Engine   = (*Engine)(nil)
	_ engine.Keeper   = (*Engine)(nil)
	_ engine.Idmapper = (*Engine)(nil)
	_ engine.Injector = (*Engine)(nil)
	_ engine.Sweeper  = (*Engine)(nil)
	_ engine.Freezer  = (*Engine)(nil)
	_ engine.Flusher  = (*Engine)(nil)
	_ engine.Layered  = (*Engine)(nil)
	_ engine.Viewer   = (*Engine)(nil)
)

// New gives the engine that keeps its nodes in dirs and takes layers from store.
func New(dirs host.Dirs, store *image.Store) *Engine {
	e := &Engine{Nodes: &nodedir.Nodes{Dirs: dirs, Store: store, Engine: Name, Slots: nodedir.Slots}, lacks: lacks}
	e.Running = func(ref engine.Ref) bool { return e.machine(ref).running() }
	return e
}

// Name is what site files call this engine.
const Name = site.Xen

// lacks gives the first of all that guests of Xen need and this host does not have; nil: it has it.
func lacks() error {
	if err := xl.Lacks(); err != nil {
		return err
	}
	_, err := qemu.Guest()
	return err
}

// Capabilities says what guests of Xen can do here, if they can run.
func (e *Engine) Capabilities() observe.Capabilities {
	able := observe.Capabilities{MoveNIC: true, Keep: true}
	if err := e.lacks(); err != nil {
		able.Unable = lackOf(err)
		return able
	}
	able.Accel = accel()
	return able
}

// accel says what runs guests: Xen, by the processor, unless Xen itself runs in emulation.
func accel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err == nil && emulated(string(text)) {
		return observe.TCG
	}
	return observe.Xen
}

// emulated tells from /proc/cpuinfo whether QEMU emulates the processor, going by the name that QEMU's own models have.
func emulated(cpuinfo string) bool {
	for line := range strings.Lines(cpuinfo) {
		if name, model, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.HasPrefix(strings.TrimSpace(model), "QEMU ")
		}
	}
	return false
}

func lackOf(err error) observe.Lack {
	var p *problem.Problem
	if errors.As(err, &p) {
		return observe.Lack{What: p.What, Cure: p.Cure}
	}
	return observe.Lack{What: err.Error()}
}

// machine is one node as Xen runs it.
type machine struct {
	nodedir.Dir
	ref engine.Ref
	run string // directory of what is there while it runs: root's
}

func (e *Engine) machine(ref engine.Ref) machine {
	return machine{e.Dir(ref), ref, filepath.Join(e.Dirs.Run, "vm", ref.Site, strconv.Itoa(ref.ID))}
}

// domain is what Xen calls the node. No domain with another name is ever touched.
func (m machine) domain() string { return "orrery-" + m.ref.Site + "-" + strconv.Itoa(m.ref.ID) }

func (m machine) group() cgroup.Group { return cgroup.Of(m.ref.Site, m.ref.ID) }

// starting is a file that is there until the node has been started. One whose starter was killed may come up or not.
func (m machine) starting() string { return m.File("starting") }

// stopping is a file that is there while the node shuts down.
func (m machine) stopping() string { return m.File("stopping") }

// freezing is a file that is there from before the node is frozen by us until after it goes on.
func (m machine) freezing() string { return m.File("freezing") }

// qemuComm is in what the kernel calls the process of a QEMU (proc_pid_comm(5), which has 15 bytes): qemu-system-i38, xen-qemu-system.
const qemuComm = "qemu-system"

// backend gives the process of QEMU, or 0 if the node does not run.
func (m machine) backend() int {
	for _, inside := range m.group().Processes() {
		if name, err := os.ReadFile(process.Host.File(inside, "comm")); err == nil && strings.Contains(string(name), qemuComm) {
			return inside
		}
	}
	return 0
}

func (m machine) running() bool { return m.backend() != 0 }

// Runner runs commands in a running node by its agent.
func (e *Engine) Runner(ref engine.Ref) host.Runner {
	return agents.Runner{Name: ref.Name, Agent: func(ctx context.Context) (*wire.Client, error) { return e.client(ctx, ref) }}
}

// client gives the connection of this process to the agent of a running node.
func (e *Engine) client(ctx context.Context, ref engine.Ref) (*wire.Client, error) {
	m := e.machine(ref)
	if !m.running() {
		return nil, engine.NotRunning(ref)
	}
	return e.agents.Of(ctx, ref, m.run)
}
