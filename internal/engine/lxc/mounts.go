package lxc

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"orrery/internal/engine/nodedir"
	"orrery/internal/site/spec"
	"orrery/internal/volume"
)

// mount is a directory that a node sees.
type mount struct {
	source   string // directory of the host
	bind     string // where it stands, with owners idmapped, in the container's mount namespace before the container has a root
	path     string // in the node
	readOnly bool
}

// mounts gives /etc/orrery and the volumes of a node.
func (e *Engine) mounts(c container, r *nodedir.Record) ([]mount, error) {
	etc := mount{e.Dirs.Etc(r.Site, r.ID), c.Bind("etc"), "/etc/orrery", true}
	return append([]mount{etc}, e.volumes(c, &r.Node, r.Mounts)...), os.MkdirAll(etc.source, 0o755)
}

// volumes gives what a node sees of volumes, the outer ones first. A record in which a path is twice is that of a run which was
// killed while it changed volumes: what it was about to give the node, or not to, is the later one.
func (e *Engine) volumes(c container, n *spec.Node, mounts []spec.Mount) []mount {
	byPath := map[string]mount{}
	for _, m := range mounts {
		path, source := filepath.Clean(m.Path), volume.Path(e.Dirs, n.Site, n.Name, m)
		if m.Copy == spec.NoCopy {
			delete(byPath, path)
			continue
		}
		byPath[path] = mount{source, c.Bind(spec.DigestBytes([]byte(source + "\x00" + path))), path, false}
	}
	var all []mount
	for _, m := range byPath {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b mount) int { return cmp.Compare(a.path, b.path) })
	return all
}

// writeFstab tells LXC what the node sees (fstab(5)). The node's root reads it, as LXC does that from inside.
func (c container) writeFstab(mounts []mount) error {
	var b strings.Builder
	for _, m := range mounts {
		options := "bind,create=dir"
		if m.readOnly {
			options += ",ro"
		}
		fmt.Fprintf(&b, "%s %s none %s 0 0\n", escape(m.bind), escape(strings.TrimPrefix(m.path, "/")), options)
	}
	fresh := c.fstab() + "-new"
	if err := os.WriteFile(fresh, []byte(b.String()), 0o644); err != nil {
		return err
	}
	return os.Rename(fresh, c.fstab())
}

// escape writes a path as fstab(5) wants it.
func escape(path string) string {
	return strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`).Replace(path)
}
