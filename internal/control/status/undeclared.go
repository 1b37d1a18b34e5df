package status

import (
	"maps"
	"slices"

	"orrery/internal/observe"
	"orrery/internal/site"
)

// addUndeclared adds the nodes that exist although the site file no longer declares them.
func (all *Status) addUndeclared(s *site.Site) {
	for k, h := range all.Fleet.All {
		for i := range all.lists[k] {
			n := &all.lists[k][i]
			if _, declared := s.Node(n.Name); declared || n.Staged {
				continue
			}
			r := Node{Node: n.Name, ID: n.ID, Release: n.Release, Host: h.Name, State: string(n.State),
				Health: Undeclared, Roles: []string{}, Addresses: map[string]string{},
				Detail: "is not in site.toml any more: orrery up destroys it"}
			for network, address := range answers(n) {
				r.Addresses[network] = address
			}
			r.Networks = slices.Sorted(maps.Keys(r.Addresses))
			r.setObserved(n)
			all.add(r, n, nil)
		}
	}
}

// setAnswers sets the addresses of a node that differ from the declared ones.
func (r *Node) setAnswers(n *observe.Node) {
	for network, address := range answers(n) {
		if r.Addresses[network] == address {
			continue
		}
		if r.Answers == nil {
			r.Answers = map[string]string{}
		}
		r.Answers[network] = address
	}
}

// answers returns the addresses that a node has been given, by network.
func answers(n *observe.Node) map[string]string {
	all := map[string]string{}
	for _, nic := range n.NICs {
		if nic.Address.IsValid() {
			all[nic.Network] = nic.Address.Addr().String()
		}
	}
	return all
}
