package service

import "slices"

// An Active service is one that each host answers itself, at the gateway's address of a network. A node of the
// host does the work.
type Active struct {
	Name    string
	Kind    string   // one of Kinds
	Network string   // whose nodes use it
	Nodes   []string // that answer, one on each host
}

// The kinds of active services.
const (
	DNS = "dns"
	NTP = "ntp"
)

// Kinds are the kinds of active services.
var Kinds = []string{DNS, NTP}

// RoleOf returns the shipped role of the nodes that answer an active service of a kind, or "" if the kind is
// unknown.
func RoleOf(kind string) string {
	switch kind {
	case DNS:
		return "orrery/dnsmasq"
	case NTP:
		return "orrery/chrony"
	}
	return ""
}

// Has reports whether a node answers the service.
func (a *Active) Has(node string) bool { return slices.Contains(a.Nodes, node) }
