package fake

import (
	"path"
	"strings"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/site/spec"
)

// tree is the files of a private layer, by path, or of a volume, by path in it.
type tree map[string]host.File

// volume names persistent data; node is "" where all share it.
type volume struct{ site, name, node string }

func volumeOf(n *spec.Node, m spec.Mount) volume {
	if m.Shared {
		return volume{n.Site, m.Volume, ""}
	}
	return volume{n.Site, m.Volume, n.Name}
}

// makeVolumes makes those volumes of a node that are kept with the host's state.
func (e *Engine) makeVolumes(n *spec.Node) {
	for _, m := range n.Mounts {
		if v := volumeOf(n, m); e.volumes[v] == nil {
			e.volumes[v] = tree{}
		}
	}
}

// at finds where a node keeps a path: in a volume or in the private layer, and under which name there.
func (e *Engine) at(n *node, file string) (tree, string) {
	for _, m := range n.spec.Mounts {
		if inside, ok := strings.CutPrefix(file, m.Path+"/"); ok {
			return e.volumes[volumeOf(&n.spec, m)], inside
		}
	}
	return n.files, file
}

// get gives a file of a node, a link as such.
func (e *Engine) get(n *node, file string) (host.File, bool) {
	files, name := e.at(n, file)
	f, ok := files[name]
	return f, ok
}

func (v volume) path() string { return path.Join("/volumes", v.site, v.name, v.node) }

// Volumes gives the persistent data of a site.
func (e *Engine) Volumes(site string) []observe.Volume {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []observe.Volume
	for v := range e.volumes {
		if v.site == site {
			all = append(all, observe.Volume{Name: v.name, Node: v.node, Path: v.path()})
		}
	}
	return all
}

// removeVolume removes persistent data by its path.
func (e *Engine) removeVolume(path string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for v := range e.volumes {
		if v.path() == path {
			delete(e.volumes, v)
		}
	}
}

// File gives a file that was put on a node.
func (e *Engine) File(ref engine.Ref, path string) (host.File, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n, ok := e.nodes[ref]
	if !ok {
		return host.File{}, false
	}
	return e.get(n, path)
}

// Commands gives the commands that were run on a node since it was made.
func (e *Engine) Commands(ref engine.Ref) []host.Command {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n, ok := e.nodes[ref]; ok {
		return append([]host.Command(nil), n.commands...)
	}
	return nil
}
