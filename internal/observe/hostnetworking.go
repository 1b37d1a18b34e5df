package observe

import "orrery/internal/site/spec"

// HostNetworking has everything on a host outside of the site that a network of the site must not collide
// with.
type HostNetworking struct {
	Networks []spec.Network `json:"networks,omitempty"` // of other sites
	// Leads are the destinations of the host's addresses and routes, except default routes.
	Leads []ReachableSubnet `json:"leads,omitempty"`
	// Interfaces are names of interfaces that belong neither to nodes nor to networks of the site.
	Interfaces []string `json:"interfaces,omitempty"`
	// Speeds are the speeds of some of these interfaces in bit/s. An interface without a link has none.
	Speeds map[string]int64 `json:"speeds,omitempty"`
	// Listeners are sockets of programs of the host, which ports that lead to nodes must not collide
	// with.
	Listeners []Listener `json:"listeners,omitempty"`
}

// MaxHostNetworking limits each list of an Around, because a host may have all routes of the internet. A
// collision beyond the limit is found when a network is created.
const MaxHostNetworking = 4096

// A ReachableSubnet is a subnet that is reachable through an interface of the host.
type ReachableSubnet struct {
	To    string `json:"to"` // a prefix
	Link  string `json:"link"`
	Route bool   `json:"route,omitempty"` // through a route, as opposed to an address
}
