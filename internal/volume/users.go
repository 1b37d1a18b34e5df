package volume

import (
	"slices"
	"strings"

	"orrery/internal/host"
	"orrery/internal/site/spec"
)

// Writers returns the nodes that write into any of these directories, because one of their volumes is
// that directory, is inside of it, or contains it.
func Writers(dirs host.Dirs, site string, nodes []*spec.Node, paths ...string) []*spec.Node {
	var users []*spec.Node
	for _, n := range nodes {
		if slices.ContainsFunc(n.Mounts, func(m spec.Mount) bool {
			at := Path(dirs, site, n.Name, m)
			return slices.ContainsFunc(paths, func(path string) bool { return isWithin(at, path) || isWithin(path, at) })
		}) {
			users = append(users, n)
		}
	}
	return users
}

// isWithin reports whether a directory is another, or below it.
func isWithin(path, top string) bool {
	return path == top || strings.HasPrefix(path, strings.TrimSuffix(top, "/")+"/")
}
