package observe

import "orrery/internal/site/spec"

// Around is what a host has besides the site, and what a network of the site must not collide with.
type Around struct {
	Networks []spec.Network `json:"networks,omitempty"` // of other sites
	Leads    []Lead         `json:"leads,omitempty"`    // where its addresses and routes lead, but for default routes
	// names of those that belong neither to nodes nor to networks of the site
	Interfaces []string `json:"interfaces,omitempty"`
}

// MaxAround bounds each list of an Around. A host may have all the routes of the internet. What is
// beyond the bound is found when a network is made.
const MaxAround = 4096

// A Lead is a subnet to which an interface of the host leads.
type Lead struct {
	To    string `json:"to"` // a prefix
	Link  string `json:"link"`
	Route bool   `json:"route,omitempty"` // by a route, or else by an address
}
