package network

import (
	"strings"

	"orrery/internal/host/shape"
	"orrery/internal/network/ends"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// linkPrefix begins the names of the host's ends of all links to nodes (site.VethName).
const linkPrefix = "orv"

// RemoveLinks removes the host's ends of links to nodes, and with them the nodes' ends. Links that
// do not exist are ignored.
func RemoveLinks(names []string) error {
	for _, name := range names {
		if !strings.HasPrefix(name, linkPrefix) && !site.IsRoutedLink(name) {
			return problem.New(problem.Failed, "%s is not a link of a node", name)
		}
		err := ends.Remove(name)
		if err == nil {
			err = shape.RemoveIFB(name)
		}
		if err != nil {
			return problem.New(problem.Failed, "remove link %s", name).Because(err)
		}
	}
	return nil
}
