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
	Source string // directory of the host
	// Bind is the mount point, with owners idmapped, from which some engines bring the mount into
	// the node.
	Bind     string
	Path     string // in the node
	ReadOnly bool
}

// Outside returns the mount beside the root of the node, from which the engine brings it into the
// node.
func (m Mount) Outside() rootfs.Bind {
	return rootfs.Bind{Source: m.Source, Target: m.Bind, ReadOnly: m.ReadOnly}
}

// Inside returns the mount in the root of the node.
func (m Mount) Inside() rootfs.Bind {
	return rootfs.Bind{Source: m.Source, Target: m.Path, ReadOnly: m.ReadOnly}
}

// Mounts returns the mounts of /etc/orrery and of a node's volumes. It creates the source directory
// of /etc/orrery.
func (n *Nodes) Mounts(r *Record) ([]Mount, error) {
	etc := Mount{n.Dirs.Etc(r.Site, r.ID), Of(n.Dirs, r.Site, r.ID).Bind("etc"), "/etc/orrery", true}
	return append([]Mount{etc}, n.Volumes(&r.Node, r.Mounts)...), os.MkdirAll(etc.Source, 0o755)
}

// Volumes returns the mounts of a node's volumes, outer ones first. If a path is recorded twice, a
// run was killed while it changed volumes. The later entry, which that run was about to apply,
// wins.
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
