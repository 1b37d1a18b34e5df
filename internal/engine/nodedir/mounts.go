package nodedir

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"

	"orrery/internal/image/rootfs"
	"orrery/internal/site/spec"
	"orrery/internal/volume"
)

// A Mount is a directory of the host that a node sees.
type Mount struct {
	Source   string // directory of the host
	Bind     string // where it stands, with owners idmapped, for an engine that brings it into the node from there
	Path     string // in the node
	ReadOnly bool
}

// Aside is the mount beside the root of the node, from where its engine takes it into the node.
func (m Mount) Aside() rootfs.Bind {
	return rootfs.Bind{Source: m.Source, Target: m.Bind, ReadOnly: m.ReadOnly}
}

// Inside is the mount in the root of the node.
func (m Mount) Inside() rootfs.Bind {
	return rootfs.Bind{Source: m.Source, Target: m.Path, ReadOnly: m.ReadOnly}
}

// Mounts returns /etc/orrery and the volumes of a node, and makes the directory behind the former.
func (n *Nodes) Mounts(r *Record) ([]Mount, error) {
	etc := Mount{n.Dirs.Etc(r.Site, r.ID), Of(n.Dirs, r.Site, r.ID).Bind("etc"), "/etc/orrery", true}
	return append([]Mount{etc}, n.Volumes(&r.Node, r.Mounts)...), os.MkdirAll(etc.Source, 0o755)
}

// Volumes returns what a node sees of volumes, the outer ones first. A record in which a path is
// twice is that of a run which was killed while it changed volumes: what it was about to give the
// node, or not to, is the later one.
func (n *Nodes) Volumes(s *spec.Node, mounts []spec.Mount) []Mount {
	byPath := map[string]Mount{}
	for _, m := range mounts {
		path, source := filepath.Clean(m.Path), volume.Path(n.Dirs, s.Site, s.Name, m)
		if m.Copy == spec.NoCopy {
			delete(byPath, path)
			continue
		}
		byPath[path] = Mount{source, Of(n.Dirs, s.Site, s.ID).Bind(spec.DigestBytes([]byte(source + "\x00" + path))), path,
			false}
	}
	var all []Mount
	for _, m := range byPath {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b Mount) int { return cmp.Compare(a.Path, b.Path) })
	return all
}
