package place

import (
	"fmt"
	"slices"

	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// MoveObstacle returns what ties a node to its host so that it cannot move to another, or "" if nothing
// does.
func MoveObstacle(s *site.Site, n *site.Node) (why, cure string) {
	if why, cure = tieReason(n, false); why != "" {
		return why, cure
	}
	for _, nic := range n.NICs {
		on, ok := s.Network(nic.Network)
		if nic.Interface != "" && (!ok || !site.KindOf(on.Kind).VirtualFunctions) { // it gets one of the other host
			return fmt.Sprintf("it uses the interface %s of its host", nic.Interface),
				"orrery down " + n.Name + ", then write the other host and its interface in site.toml, and orrery up"
		}
	}
	for _, role := range s.RolesOf(n) {
		for _, use := range role.Volumes {
			v := s.Volume(use.Name)
			switch {
			case v.From().Everywhere:
			case v.Shared:
				return fmt.Sprintf("volume %s is shared with other nodes of its host", v.Name), `give it an nfs = "server:/export"`
			case v.Path != "":
				return fmt.Sprintf("volume %s is at %s of its host", v.Name, v.Path),
					"remove path to keep it in the host's state, so that it moves too; or put its data on storage that both hosts share"
			}
		}
	}
	return "", ""
}

// CheckMoves returns an error if nodes move to a host without room for them, unless the site fixes them
// to that host. In the site, the nodes are already placed on their new hosts.
func CheckMoves(s *site.Site, hosts []observe.Host, names []string, fixed func(node string) bool) error {
	room := newCapacities(s, hosts)
	var come []*site.Node
	for i := range s.Nodes {
		if n := &s.Nodes[i]; slices.Contains(names, n.Name) {
			come = append(come, n)
		} else {
			room.assign(n, n.Host)
		}
	}
	for _, n := range come {
		if !room.byName[n.Host].hasRoomFor(n) && !fixed(n.Name) {
			return problem.New(problem.Unable, "node %s cannot move to host %s, which does not have %s free", n.Name,
				n.Host,
				describeNeeds(n)).
				Try("move other nodes away first, lower limits, or write host = %q for it to overcommit that host",
					n.Host)
		}
		room.assign(n, n.Host)
	}
	return nil
}
