package site

import (
	"slices"

	"orrery/internal/site/service"
)

// Service returns the service called name, or false.
func (s *Site) Service(name string) (*service.Service, bool) {
	return find(s.Services, name, func(v *service.Service) string { return v.Name })
}

// AddServices adds to the nodes of the site's services the addresses that may move to them, and the role that
// moves them.
func (s *Site) AddServices() {
	if len(s.Services) == 0 {
		return
	}
	nodes := s.NodesByName()
	for i := range s.Services {
		for _, name := range s.Services[i].Nodes {
			if n := nodes[name]; n != nil {
				n.addService(&s.Services[i])
			}
		}
	}
}

func (n *Node) addService(v *service.Service) {
	if !slices.Contains(n.Roles, service.Role) {
		n.Roles = append(slices.Clone(n.Roles), service.Role) // which other nodes of a range share
	}
	n.NICs = slices.Clone(n.NICs)
	for i := range n.NICs {
		if nic := &n.NICs[i]; nic.Network == v.Network && v.Address.IsValid() && !slices.Contains(nic.Moving, v.Address) {
			nic.Moving = append(slices.Clone(nic.Moving), v.Address)
		}
	}
}
