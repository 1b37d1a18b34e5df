package roster

import (
	"orrery/internal/control/hosts"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// Check finds what is wrong with a site that reading it has not shown, and that no host need be asked for.
func Check(s *site.Site) error {
	maker := spec.NewMaker(s)
	for i := range s.Nodes {
		if _, err := maker.Node(&s.Nodes[i]); err != nil {
			return err // a template that cannot be rendered
		}
	}
	return hosts.CheckDisks(s)
}
