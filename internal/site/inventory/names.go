package inventory

import (
	"strings"

	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// Names are what nodes of a host are told of all nodes of their site, as it is put into
// /etc/orrery. What is missing are the SSH host keys, which the host has.
type Names struct {
	Peers     []Peer            `json:"peers"`     // all nodes of the site
	Hosts     map[string][]byte `json:"hosts"`     // hosts(5), by the networks of who reads it
	Inventory []byte            `json:"inventory"` // inventory.json
	Told      []Told            `json:"told"`      // those who are told
}

// A Peer is a node with the names by which others know it.
type Peer struct {
	Node  string   `json:"node"`
	Known []string `json:"known"`
}

// Told is a node that is told of its peers.
type Told struct {
	Site  string `json:"site"` // the key
	ID    int    `json:"id"`
	Hosts string `json:"hosts"` // which of Names.Hosts
}

// A Teller makes Names of a site. What nodes have in common it makes once: for many nodes, each
// would take as long as they are many.
type Teller struct {
	site  *site.Site
	names Names
}

// NewTeller returns the Teller of a site.
func NewTeller(s *site.Site) *Teller {
	t := &Teller{site: s, names: Names{Hosts: map[string][]byte{}, Inventory: JSON(s)}}
	for i := range s.Nodes {
		t.names.Peers = append(t.names.Peers, Peer{s.Nodes[i].Name, knownAs(s.Name, &s.Nodes[i])})
	}
	return t
}

// Tell returns what some nodes of the site are told.
func (t *Teller) Tell(nodes ...*site.Node) *Names {
	n := &Names{Peers: t.names.Peers, Hosts: map[string][]byte{}, Inventory: t.names.Inventory}
	for _, node := range nodes {
		networks := node.Networks()
		on := strings.Join(networks, " ")
		if _, made := t.names.Hosts[on]; !made {
			t.names.Hosts[on] = spec.Hosts(t.site, networks)
		}
		n.Hosts[on] = t.names.Hosts[on]
		n.Told = append(n.Told, Told{t.site.Key(), node.FullID(), on})
	}
	return n
}

// knownAs returns all names and addresses of a node by which its SSH host key is found.
func knownAs(name string, n *site.Node) []string {
	names := []string{n.Name, n.Name + "." + name}
	for _, nic := range n.NICs {
		names = append(names, n.Name+"."+nic.Network+"."+name, nic.Address.String())
	}
	return names
}
