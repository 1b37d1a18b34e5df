package volume

import (
	"slices"
	"strings"

	"orrery/internal/host"
	"orrery/internal/site/spec"
)

// Users returns those of some nodes that write into any of these directories: because it is that of
// a volume of theirs, or inside of one, or around it.
func Users(dirs host.Dirs, site string, nodes []*spec.Node, paths ...string) []*spec.Node {
	var users []*spec.Node
	for _, n := range nodes {
		if slices.ContainsFunc(n.Mounts, func(m spec.Mount) bool {
			at := Path(dirs, site, n.Name, m)
			return slices.ContainsFunc(paths, func(path string) bool { return within(at, path) || within(path, at) })
		}) {
			users = append(users, n)
		}
	}
	return users
}

// within reports whether a directory is another, or below it.
func within(path, top string) bool {
	return path == top || strings.HasPrefix(path, strings.TrimSuffix(top, "/")+"/")
}
