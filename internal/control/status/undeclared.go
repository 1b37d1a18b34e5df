package status

import (
	"orrery/internal/observe"
	"orrery/internal/site"
)

// addUndeclared adds the live nodes on a host that the site does not declare.
func (all *Status) addUndeclared(s *site.Site, host string, present []observe.Node) {
	for i := range present {
		n := &present[i]
		if _, declared := s.Node(n.Name); declared || n.Staged {
			continue
		}
		r := Node{Node: n.Name, ID: n.ID, Release: n.Release, Host: host, State: string(n.State), Health: "-",
			Undeclared: true, Roles: []string{}, Addresses: map[string]string{}}
		r.setObserved(n)
		found := &site.Node{Name: n.Name, ID: n.ID, Release: n.Release, Host: host, Engine: n.Engine}
		for _, nic := range n.NICs {
			r.Networks = append(r.Networks, nic.Network)
			r.Addresses[nic.Network] = nic.Address.Addr().String()
			found.NICs = append(found.NICs, site.NIC{Network: nic.Network, Address: nic.Address.Addr()})
		}
		all.add(r, n, found)
	}
}

// setActualAddresses sets the addresses at which a node answers if they are not the declared ones.
func (r *Node) setActualAddresses(actual *observe.Node) {
	if !actual.Runs() {
		return
	}
	for _, nic := range actual.NICs {
		at := nic.Address.Addr()
		if !at.IsValid() || r.Addresses[nic.Network] == at.String() {
			continue
		}
		if r.AnswersAt == nil {
			r.AnswersAt = map[string]string{}
		}
		r.AnswersAt[nic.Network] = at.String()
	}
}
