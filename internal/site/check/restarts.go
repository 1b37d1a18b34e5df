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
				found.report(key, "remove it, or make the file a template",
					"restarts has no effect on %s, which is in the layer: changing it recreates the node", f.Path)
				continue
			}
			for n, s := range f.Restarts {
				if !known[s] {
					cure := "add it to the role's services"
					if nearest := found.nearest("service", s, services); nearest != "" {
						cure = fmt.Sprintf("did you mean %q?", nearest)
					}
					found.report(append(key, strconv.Itoa(n)), cure,
						"%s restarts %q, which is not a service of any role", f.Path, s)
				}
			}
		}
	}
}
