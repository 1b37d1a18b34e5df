// Package lxc makes nodes as system containers with LXC 5 (lxc.container.conf(5)): each with its
// own systemd, unprivileged by default, on an overlay of shared layers.
//
// What a node's directory holds, package nodedir tells; this one keeps LXC's configuration and logs
// in it beside. Mounts are made on rootfs and binds in a namespace that only the container has;
// fstab says which of the binds the node sees where. So the host's mount table shows nothing of a
// node, and nothing stays mounted when one dies.
package lxc

import (
	"fmt"
	"strconv"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/host/cgroup"
	"orrery/internal/image"
	"orrery/internal/image/rootfs"
	"orrery/internal/observe"
	"orrery/internal/tree"
)

// Engine makes nodes with LXC. What is done to one that does not run, Nodes do.
type Engine struct{ *nodedir.Nodes }

var (
	_ engine.Engine    = (*Engine)(nil)
	_ engine.Glancer   = (*Engine)(nil)
	_ engine.Keeper    = (*Engine)(nil)
	_ engine.Idmapper  = (*Engine)(nil)
	_ engine.Injector  = (*Engine)(nil)
	_ engine.Sweeper   = (*Engine)(nil)
	_ engine.Remounter = (*Engine)(nil)
	_ engine.Freezer   = (*Engine)(nil)
	_ engine.Layered   = (*Engine)(nil)
	_ engine.Grouped   = (*Engine)(nil)
	_ engine.Viewer    = (*Engine)(nil)
)

// New returns the engine that keeps its nodes in dirs and takes layers from store.
func New(dirs host.Dirs, store *image.Store) *Engine {
	e := &Engine{&nodedir.Nodes{Dirs: dirs, Store: store, Engine: Name, Slots: nodedir.Slots}}
	e.Running = func(ref engine.Ref) bool { return e.container(ref).running() }
	return e
}

// Name is what site files call this engine.
const Name = "lxc"

// Capabilities says what LXC can do.
func (e *Engine) Capabilities() observe.Capabilities {
	return observe.Capabilities{Containers: true, LiveLimits: true, MoveNIC: true, Remount: true, Keep: true, Move: true}
}

// container is one node as LXC knows it.
type container struct {
	nodedir.Dir
	processes
}

func (e *Engine) container(ref engine.Ref) container {
	dir := e.Dir(ref)
	return container{dir, processes{dir, ref.Site + "-" + strconv.Itoa(ref.ID), ref}}
}

func (c container) config() string { return c.File("lxc.conf") }
func (c container) log() string    { return c.File("lxc.log") }
func (c container) fstab() string  { return c.File("fstab") }

// namespace is the file at which LXC finds the node's user namespace, in the mount namespace that the node has.
func (c container) namespace() string { return c.File("user-namespace") }

// View opens the root of a running node.
func (e *Engine) View(ref engine.Ref) (*tree.Root, error) {
	root, _, err := e.view(ref)
	return root, err
}

// view opens the root of a running node, and returns the ids that this node has.
func (e *Engine) view(ref engine.Ref) (root *tree.Root, ids rootfs.IDs, err error) {
	c := e.container(ref)
	pid := c.init()
	if pid == 0 {
		return nil, ids, engine.NotRunning(ref)
	}
	r, err := e.Record(ref)
	if err != nil {
		return nil, ids, err
	}
	root, err = tree.Open(fmt.Sprintf("/proc/%d/root/.", pid))
	if err != nil {
		return nil, ids, err
	}
	if c.init() != pid { // it ended meanwhile, and the number or the record may be another's
		root.Close() //nolint:errcheck // nothing was written
		return nil, ids, engine.NotRunning(ref)
	}
	return root, r.IDs(), nil
}

// Cgroup returns the node's control group.
func (e *Engine) Cgroup(ref engine.Ref) string { return e.container(ref).group().Name() }

// starting is a file that is there until the node has been started. One whose starter was killed
// may come up or not.
func (c container) starting() string { return c.File("starting") }

// stopping is a file that is there while the node shuts down.
func (c container) stopping() string { return c.File("stopping") }

// groups are all that LXC makes for the node.
func (c container) groups() []cgroup.Group {
	return []cgroup.Group{c.group(), c.group().Beside(".monitor"), c.group().Beside(".pivot")}
}
