// Package nodedir stores each node of a host in a directory. The directory holds node.json, which
// records what the node was made from and how far it has come, the node's private layer, and files
// of its engine. The records of a host are the truth about it, as there is no other database.
//
// Only this package knows the paths in the directory. Type Nodes implements what engines with
// layered nodes have in common, and what they do to stopped nodes. An engine embeds Nodes and adds
// what runs nodes.
//
// A node is made under another name and then renamed, replaced by exchanging two directories, and
// renamed again before it is removed. So at every moment there is a complete node or none.
// Directories whose names begin with a dot are leftovers, and are removed by the next run that
// holds the site's lock.
package nodedir

import (
	"path/filepath"
	"strconv"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/image/rootfs"
)

// A Dir is the directory of a node, which may not be there.
type Dir struct{ path string }

// Of returns the directory of a node of a site.
func Of(dirs host.Dirs, site string, id int) Dir {
	return Dir{filepath.Join(dirs.Nodes(site), strconv.Itoa(id))}
}

// At returns the directory of a node by its path.
func At(path string) Dir { return Dir{path} }

// Path returns the path of the directory.
func (d Dir) Path() string { return d.path }

// File returns the path of an engine's file in the directory.
func (d Dir) File(name string) string { return filepath.Join(d.path, name) }

// Root returns the mount point of the node's root. It is mounted in a namespace that only the node
// has.
func (d Dir) Root() string { return d.File("rootfs") }

// Bind returns the directory behind one of the node's mounts, in the node's mount namespace. It is
// named after what it contains, so that other mounts can come and go.
func (d Dir) Bind(name string) string { return filepath.Join(d.File("binds"), name) }

// Private returns the private layer: what the node has written outside volumes, with the owners
// that the node sees.
func (d Dir) Private() string { return d.File("private/upper") }

// sibling returns a directory next to the node's, which exists until a change of the node is
// complete.
func (d Dir) sibling(what string) Dir {
	return Dir{filepath.Join(filepath.Dir(d.path), "."+filepath.Base(d.path)+"-"+what)}
}

// Overlay returns the overlay that is mounted as the node's root: the layers of the node and its
// private layer.
func (d Dir) Overlay(store *image.Store, r *Record) *rootfs.Overlay {
	o := &rootfs.Overlay{Upper: d.Private(), Work: d.File("private/work"), Target: d.Root(), IDs: r.IDs()}
	for _, digest := range r.Layers() {
		o.Lower = append(o.Lower, store.Tree(digest))
	}
	return o
}

// Nodes are the nodes of one engine on this host.
type Nodes struct {
	Dirs    host.Dirs
	Store   *image.Store
	Engine  string                // the engine's name in site files
	Slots   string                // directory of Slots, or "" if all nodes have the host's user ids
	Running func(engine.Ref) bool // reports whether a node runs, which only the engine knows

	PlugsNIC bool // the engine has observe.Capabilities.PlugNIC
	ByHeader bool // the engine's QEMU finds the image below a node's disk by the disk's header
}

// Dir returns the directory of a node.
func (n *Nodes) Dir(ref engine.Ref) Dir { return Of(n.Dirs, ref.Site, ref.ID) }

// SiteDir returns the directory of the nodes of a site.
func SiteDir(dirs host.Dirs, site string) string { return dirs.Nodes(site) }

// Private returns the private layer of a node.
func (n *Nodes) Private(ref engine.Ref) string { return n.Dir(ref).Private() }

// Idmap returns the id that a node's root has on the host.
func (n *Nodes) Idmap(ref engine.Ref) (int, error) {
	r, err := n.Record(ref)
	if err != nil {
		return 0, err
	}
	return r.IDs().First, nil
}
