package fake

import (
	"context"
	"path/filepath"
	"strings"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/site/spec"
	trees "orrery/internal/tree"
	volumes "orrery/internal/volume"
)

// A Disk is a fake engine whose nodes have directories on the host, as those of a real engine do.
// Their records and files, including those on volumes, are where snapshots, backups and the
// operations of a site expect them. So tests can try these operations, with failures that they
// inject.
type Disk struct {
	*Engine
	dirs   *nodedir.Nodes
	owners map[string]string // by path, because the user who runs a test may not be able to change owners
}

var (
	_ engine.Replacer  = (*Disk)(nil)
	_ engine.Remounter = (*Disk)(nil)
	_ engine.Layered   = (*Disk)(nil)
	_ engine.Sweeper   = (*Disk)(nil)
)

// OnDisk returns an engine without nodes.
func OnDisk(dirs host.Dirs) *Disk { return New().OnDisk(dirs) }

// OnDisk returns an engine that keeps its nodes in directories. The engine must not have any nodes yet.
func (e *Engine) OnDisk(dirs host.Dirs) *Disk {
	d := &Disk{Engine: e, owners: map[string]string{}}
	d.dirs = &nodedir.Nodes{Dirs: dirs, Engine: "fake", Running: d.runs}
	d.disk = d
	return d
}

func (d *Disk) runs(ref engine.Ref) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, ok := d.nodes[ref]
	return ok && n.running()
}

// place returns the directory in which a node's file is stored, and the path in it.
func (d *Disk) place(n *spec.Node, path string) (dir, name string) {
	for _, m := range n.Mounts {
		if inside, ok := strings.CutPrefix(path, m.Path+"/"); ok && m.Copy != spec.NoCopy {
			return volumes.Path(d.dirs.Dirs, n.Site, n.Name, m), inside
		}
	}
	return d.dirs.Private(engine.RefOf(n)), path
}

// Create makes a stopped node.
func (d *Disk) Create(ctx context.Context, n *spec.Node) error {
	if err := d.Engine.Create(ctx, n); err != nil {
		return err
	}
	return d.dirs.Create(ctx, n)
}

// Change updates everything but the layers of a node to the spec.
func (d *Disk) Change(ctx context.Context, n *spec.Node) error {
	return d.updateRecord(d.Engine.Change(ctx, n), engine.RefOf(n))
}

// Remount changes which volumes a running node sees.
func (d *Disk) Remount(ctx context.Context, n *spec.Node) error {
	return d.updateRecord(d.Engine.Remount(ctx, n), engine.RefOf(n))
}

// SetProgress records how far a node has come.
func (d *Disk) SetProgress(ctx context.Context, ref engine.Ref, m engine.Progress) error {
	return d.updateRecord(d.Engine.SetProgress(ctx, ref, m), ref)
}

// Replace recreates a stopped node and keeps the former one aside.
func (d *Disk) Replace(ctx context.Context, n *spec.Node) error {
	if err := d.Engine.Replace(ctx, n); err != nil {
		return err
	}
	return d.dirs.Replace(ctx, n)
}

// Restore puts the former node back.
func (d *Disk) Restore(ctx context.Context, ref engine.Ref) error {
	if err := d.Engine.Restore(ctx, ref); err != nil {
		return err
	}
	return d.dirs.Restore(ctx, ref)
}

// Settle removes the former node.
func (d *Disk) Settle(ctx context.Context, ref engine.Ref) error {
	if err := d.Engine.Settle(ctx, ref); err != nil {
		return err
	}
	return d.dirs.Settle(ctx, ref)
}

// Destroy removes a node.
func (d *Disk) Destroy(ctx context.Context, ref engine.Ref) error {
	if err := d.Engine.Destroy(ctx, ref); err != nil {
		return err
	}
	return d.dirs.Remove(ref)
}

// Private returns the directory of what a node has written outside volumes.
func (d *Disk) Private(ref engine.Ref) string { return d.dirs.Private(ref) }

// Fill replaces a node's private layer.
func (d *Disk) Fill(ref engine.Ref, layer string) error { return d.dirs.Fill(ref, layer) }

// Sweep removes what killed runs left beside the nodes.
func (d *Disk) Sweep(_ context.Context, site string) error { return d.dirs.Sweep(site) }

// updateRecord updates the record of a node after an operation, even if that has failed.
func (d *Disk) updateRecord(err error, ref engine.Ref) error {
	d.mu.Lock()
	n, ok := d.nodes[ref]
	d.mu.Unlock()
	r, unread := d.dirs.Dir(ref).Read()
	if !ok || unread != nil {
		return err
	}
	d.mu.Lock()
	r.Node, r.Config = n.spec, n.mark.Config
	r.Configured, r.Proven, r.ProvenAt, r.Active = n.mark.Configured, n.mark.Proven, n.mark.ProvenAt, n.mark.Active
	d.mu.Unlock()
	if unwritten := d.dirs.Dir(ref).Write(r); err == nil {
		return unwritten
	}
	return err
}

// put writes a file of a node.
func (d *Disk) put(n *spec.Node, f host.File) error {
	dir, name := d.place(n, f.Path)
	root, err := trees.Open(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	d.owners[filepath.Join(dir, name)] = f.Owner
	return root.Put(trees.File{Path: name, Content: f.Content, Link: f.Link, Uid: -1, Gid: -1, Mode: f.Mode}, -1, -1)
}

// get reads a file of a node.
func (d *Disk) get(n *spec.Node, file string) (f host.File, ok bool) {
	dir, name := d.place(n, file)
	root, err := trees.Open(dir)
	if err != nil {
		return f, false
	}
	defer root.Close()
	f.Path, f.Owner = file, d.owners[filepath.Join(dir, name)]
	if f.Link, err = root.Readlink(name); err == nil {
		return f, true
	}
	st, err := root.Lstat(name)
	if err != nil {
		return f, false
	}
	f.Mode = st.Mode & 0o7777
	f.Content, err = root.ReadFile(name, 1<<20)
	return f, err == nil
}
