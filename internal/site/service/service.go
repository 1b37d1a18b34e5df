// Package service has what a site declares of its services.
package service

import (
	"net/netip"
	"slices"
	"time"
)

// A Service is an address of a network that one of several nodes has at a time. If the node fails, another
// takes the address over.
type Service struct {
	Name    string
	Address netip.Addr `toml:"address"`
	Network string     `toml:"network"` // the network of the address
	Nodes   []string   // nodes that may have the address, the preferred one first
	// Takeover is Fast.
	Takeover string `toml:"takeover" default:"fast"`
	// Advertise is the interval in which the holder tells the others that it lives.
	Advertise time.Duration `toml:"advertise" default:"200ms"`
}

// Fast is the Service.Takeover by which the nodes decide among themselves, within about four intervals. For a
// moment, two nodes may hold the address.
const Fast = "fast"

// Role is the shipped role that the nodes of services have.
const Role = "orrery/keepalived"

// Limits of services.
const (
	MaxNodes     = 16
	MinAdvertise = 100 * time.Millisecond
	MaxAdvertise = time.Second
)

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
