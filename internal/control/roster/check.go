package roster

import (
	"orrery/internal/control/hosts"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// Check finds errors in a site that loading it does not find, and that can be found without
// contacting a host.
func Check(s *site.Site) error {
	maker := spec.NewBuilder(s)
	for i := range s.Nodes {
		if _, err := maker.Node(&s.Nodes[i]); err != nil {
			return err // a template that cannot be rendered
		}
	}
	return hosts.CheckDisks(s)
}
