package site

import (
	"net/netip"
	"slices"
	"time"
)

// A Service is an address of a network that one of several nodes has at a time. If the node fails, another
// takes the address over.
type Service struct {
	Name      string
	Address   netip.Addr    `toml:"address"`
	Network   string        `toml:"network"` // the network of the address
	Nodes     []string      // nodes that may have the address, the preferred one first
	Takeover  string        `toml:"takeover" default:"fast"`   // TakeoverFast
	Advertise time.Duration `toml:"advertise" default:"200ms"` // interval in which the holder tells the others that it lives
}

// TakeoverFast is the Service.Takeover by which the nodes decide among themselves, within about four
// intervals. For a moment, two nodes may hold the address.
const TakeoverFast = "fast"

// ServiceRole is the shipped role that the nodes of services have.
const ServiceRole = "orrery/keepalived"

// Limits of services.
const (
	MaxServiceNodes = 16
	MinAdvertise    = 100 * time.Millisecond
	MaxAdvertise    = time.Second
)

// Service returns the service called name, or false.
func (s *Site) Service(name string) (*Service, bool) {
	return find(s.Services, name, func(v *Service) string { return v.Name })
}

// RouterID returns the number by which the nodes of a service recognize its messages among those of
// their other services (RFC 5798, VRID). Zero is not a valid number.
func (v *Service) RouterID() int {
	if !v.Address.Is4() {
		return 0
	}
	return int(v.Address.As4()[3])
}

// Has reports whether a node may have the address of the service.
func (v *Service) Has(node string) bool { return slices.Contains(v.Nodes, node) }

// AddServices gives the nodes of the site's services the addresses that may move to them, and the role that
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

func (n *Node) addService(v *Service) {
	if !slices.Contains(n.Roles, ServiceRole) {
		n.Roles = append(slices.Clone(n.Roles), ServiceRole) // which other nodes of a range share
	}
	n.NICs = slices.Clone(n.NICs)
	for i := range n.NICs {
		if nic := &n.NICs[i]; nic.Network == v.Network && v.Address.IsValid() && !slices.Contains(nic.Moving, v.Address) {
			nic.Moving = append(slices.Clone(nic.Moving), v.Address)
		}
	}
}
