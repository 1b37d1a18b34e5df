package site

import (
	"slices"

	"orrery/internal/site/service"
)

// Service returns the service called name, or false.
func (s *Site) Service(name string) (*service.Service, bool) {
	return find(s.Services, name, func(v *service.Service) string { return v.Name })
}

// AddServices adds to the nodes of the site's services the roles of the services, and the addresses that may
// move to them.
func (s *Site) AddServices() {
	if len(s.Services)+len(s.Active) == 0 {
		return
	}
	nodes := s.NodesByName()
	for i := range s.Active {
		role := service.RoleOf(s.Active[i].Kind)
		for _, name := range s.Active[i].Nodes {
			if n := nodes[name]; n != nil && role != "" {
				n.addRole(role)
			}
		}
	}
	for i := range s.Services {
		for _, name := range s.Services[i].Nodes {
			if n := nodes[name]; n != nil {
				n.addService(&s.Services[i])
			}
		}
	}
}

// IsServed reports whether a network has an active service of a kind, or of any kind if kind is "".
func (s *Site) IsServed(network, kind string) bool {
	return slices.ContainsFunc(s.Active, func(a service.Active) bool {
		return a.Network == network && (kind == "" || a.Kind == kind)
	})
}

func (n *Node) addRole(role string) {
	if !slices.Contains(n.Roles, role) {
		n.Roles = append(slices.Clone(n.Roles), role) // which other nodes of a range share
	}
}

func (n *Node) addService(v *service.Service) {
	n.addRole(service.Role)
	n.NICs = slices.Clone(n.NICs)
	for i := range n.NICs {
		if nic := &n.NICs[i]; nic.Network == v.Network && v.Address.IsValid() && !slices.Contains(nic.Moving, v.Address) {
			nic.Moving = append(slices.Clone(nic.Moving), v.Address)
		}
	}
}
