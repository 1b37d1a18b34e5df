// Package nodedir stores what a host has of each node: node.json, which records what the node was
// made from and how far it has come, its private layer, and the files of its engine. The records of
// a host are the truth about it; there is no other database.
//
// Nobody else knows what is where in there. Nodes are what engines have in common whose nodes stand
// on layers, and do to a node that does not run: an engine embeds them and brings what runs. A node
// is made under another name and renamed, replaced by an exchange, and removed under another name
// again, so that at every moment there is a whole one, or none. What has a name with a dot is left
// over, and swept by the next who holds the site's lock.
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

// Path says where it is.
func (d Dir) Path() string { return d.path }

// File is a file in it, of the engine's.
func (d Dir) File(name string) string { return filepath.Join(d.path, name) }

// Root is where the root of the node is mounted, in a namespace that only the node has.
func (d Dir) Root() string { return d.File("rootfs") }

// Bind is the directory behind a mount of the node, in that namespace. It is called by what it is,
// so that others can come and go beside it.
func (d Dir) Bind(name string) string { return filepath.Join(d.File("binds"), name) }

// Private is the private layer: what the node has written outside volumes, with the owners that it sees.
func (d Dir) Private() string { return d.File("private/upper") }

// beside is a directory that a change of the node makes, or leaves until it is complete.
func (d Dir) beside(what string) Dir {
	return Dir{filepath.Join(filepath.Dir(d.path), "."+filepath.Base(d.path)+"-"+what)}
}

// Overlay is the root of a node as it is mounted: the layers that it stands on and the private one.
func (d Dir) Overlay(store *image.Store, r *Record) *rootfs.Overlay {
	o := &rootfs.Overlay{Upper: d.Private(), Work: d.File("private/work"), Target: d.Root(), IDs: r.IDs()}
	for _, digest := range r.Layers() {
		o.Lower = append(o.Lower, store.Tree(digest))
	}
	return o
}

// Nodes are the nodes of an engine on this host.
type Nodes struct {
	Dirs    host.Dirs
	Store   *image.Store
	Engine  string                // what site files call the engine
	Slots   string                // directory that says which node has which range of user ids; "": all have the host's
	Running func(engine.Ref) bool // tells whether a node runs, which only the engine knows

	PlugsNIC bool // the engine can give interfaces to nodes that run, and take them: observe.Capabilities.PlugNIC
	ByHeader bool // its QEMU knows what is under the disk of a node by what the header says
}

// Dir returns the directory of a node.
func (n *Nodes) Dir(ref engine.Ref) Dir { return Of(n.Dirs, ref.Site, ref.ID) }

// Top is the directory in which the nodes of a site are.
func Top(dirs host.Dirs, site string) string { return dirs.Nodes(site) }

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
