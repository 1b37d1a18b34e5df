// Package lxc makes nodes as system containers with LXC 5 (lxc.container.conf(5)). Each has its own
// systemd, is unprivileged by default, and runs on an overlay of shared layers.
//
// Package nodedir describes the contents of a node's directory, in which this package also stores
// LXC's configuration and logs. The node's rootfs and binds are mounted in a namespace that only
// the container has. The file fstab says where the node sees each bind. So the host's mount table
// shows nothing of a node, and nothing stays mounted when a node dies.
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

// Engine makes nodes with LXC. Its embedded Nodes handle stopped nodes.
type Engine struct{ *nodedir.Nodes }

var (
	_ engine.Engine         = (*Engine)(nil)
	_ engine.StateReader    = (*Engine)(nil)
	_ engine.Replacer       = (*Engine)(nil)
	_ engine.Idmapper       = (*Engine)(nil)
	_ engine.Injector       = (*Engine)(nil)
	_ engine.Sweeper        = (*Engine)(nil)
	_ engine.Remounter      = (*Engine)(nil)
	_ engine.Freezer        = (*Engine)(nil)
	_ engine.Layered        = (*Engine)(nil)
	_ engine.CgroupProvider = (*Engine)(nil)
	_ engine.RootOpener     = (*Engine)(nil)
)

// New returns the engine that stores its nodes in dirs and uses the layers in store.
func New(dirs host.Dirs, store *image.Store) *Engine {
	e := &Engine{&nodedir.Nodes{Dirs: dirs, Store: store, Engine: Name, Slots: nodedir.Slots}}
	e.Running = func(ref engine.Ref) bool { return e.container(ref).running() }
	return e
}

// Name is the engine's name in site files.
const Name = "lxc"

// Capabilities returns what LXC can do.
func (e *Engine) Capabilities() observe.Capabilities {
	return observe.Capabilities{Containers: true, LiveLimits: true, MoveNIC: true, Remount: true, Keep: true, Move: true}
}

// container is the LXC container of one node.
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

// namespaceFile returns the path of the node's user namespace, for LXC to find in the node's mount
// namespaceFile.
func (c container) namespaceFile() string { return c.File("user-namespace") }

// OpenRoot opens the root of a running node.
func (e *Engine) OpenRoot(ref engine.Ref) (*tree.Root, error) {
	root, _, err := e.openRoot(ref)
	return root, err
}

// openRoot opens the root of a running node and returns the node's user ids.
func (e *Engine) openRoot(ref engine.Ref) (root *tree.Root, ids rootfs.IDs, err error) {
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
	if c.init() != pid { // the process has ended, and its id or the record may belong to another node
		root.Close() //nolint:errcheck // nothing was written
		return nil, ids, engine.NotRunning(ref)
	}
	return root, r.IDs(), nil
}

// Cgroup returns the node's control group.
func (e *Engine) Cgroup(ref engine.Ref) string { return e.container(ref).group().Name() }

// startingFile returns the path of a file that exists while the node is being started. If its run was
// killed, the node may come up or not.
func (c container) startingFile() string { return c.File("starting") }

// stoppingFile returns the path of a file that exists while the node shuts down.
func (c container) stoppingFile() string { return c.File("stopping") }

// groups returns all control groups that LXC creates for the node.
func (c container) groups() []cgroup.Group {
	return []cgroup.Group{c.group(), c.group().Sibling(".monitor"), c.group().Sibling(".pivot")}
}
