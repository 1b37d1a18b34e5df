package fake

import (
	"maps"
	"path"
	"slices"
	"strings"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// tree is the files of a private layer or a volume, by path in it.
type tree map[string]host.File

// volume identifies a volume. node is "" for a shared volume. copy is the release for whose
// quarantine the volume was copied, or 0 for no copy.
type volume struct {
	site, name, node string
	copy             int
}

func volumeOf(n *spec.Node, m spec.Mount) volume {
	v := volume{n.Site, m.Volume, n.Name, 0}
	if m.Shared {
		v.node = ""
	}
	if m.Copy != "" {
		v.copy = m.Release
	}
	return v
}

// volumeTrees are the volumes that are stored with the host's state.
type volumeTrees map[volume]tree

// make creates the volumes of a node that do not exist yet.
func (t volumeTrees) make(n *spec.Node) {
	for _, m := range n.Mounts {
		v := volumeOf(n, m)
		if m.Copy == spec.NoCopy || t[v] != nil {
			continue
		}
		t[v] = tree{}
		if m.Copy == site.CopySnapshot {
			of := v
			of.copy = 0
			maps.Copy(t[v], t[of])
		}
	}
}

// at returns where a node's file is stored, in a volume or in the private layer, and its path
// there. If two mounts have the same path, the later one counts.
func (t volumeTrees) at(n *node, file string) (tree, string) {
	for _, m := range slices.Backward(n.spec.Mounts) {
		if inside, ok := strings.CutPrefix(file, m.Path+"/"); ok {
			if m.Copy == spec.NoCopy {
				break
			}
			return t[volumeOf(&n.spec, m)], inside
		}
	}
	return n.files, file
}

// put stores a file of a node.
func (e *Engine) put(n *node, f host.File) error {
	if e.disk != nil {
		return e.disk.put(&n.spec, f)
	}
	files, name := e.volumes.at(n, f.Path)
	files[name] = f
	return nil
}

// get returns a file of a node. It does not follow links.
func (e *Engine) get(n *node, file string) (host.File, bool) {
	if e.disk != nil {
		return e.disk.get(&n.spec, file)
	}
	files, name := e.volumes.at(n, file)
	f, ok := files[name]
	return f, ok
}

func (v volume) path() string { return path.Join("/volumes", v.site, v.name, v.node) }

// File returns a file of a node.
func (e *Engine) File(ref engine.Ref, path string) (host.File, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n, ok := e.nodes[ref]
	if !ok {
		return host.File{}, false
	}
	return e.get(n, path)
}

// Commands returns the commands that were run on a node since it was made.
func (e *Engine) Commands(ref engine.Ref) []host.Command {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n, ok := e.nodes[ref]; ok {
		return append([]host.Command(nil), n.commands...)
	}
	return nil
}
