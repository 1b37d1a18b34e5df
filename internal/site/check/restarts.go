package check

import (
	"fmt"
	"slices"
	"strconv"

	"orrery/internal/site"
)

// checkRestarts checks the services that a changed file of a role restarts. They must be services
// of roles, and only rendered files can change on a running node.
func checkRestarts(ix *index, found *findings) {
	services := site.ServicesOf(slices.Collect(each(ix.Roles)))
	known := toSet(services)
	for r := range each(ix.Roles) {
		for k, f := range r.Files {
			key := at("role", r.Name, "file", k, "restarts")
			if f.Restarts != nil && !f.Rendered() {
				found.report(key, "take it out, or make the file a template",
					"restarts is of no use for %s, which is in the layer: a change of it recreates the node", f.Path)
				continue
			}
			for n, s := range f.Restarts {
				if !known[s] {
					cure := "add it to services of its role"
					if nearest := found.nearest("service", s, services); nearest != "" {
						cure = fmt.Sprintf("did you mean %q?", nearest)
					}
					found.report(append(key, strconv.Itoa(n)), cure, "%s restarts %q, and no role has that service", f.Path, s)
				}
			}
		}
	}
}
