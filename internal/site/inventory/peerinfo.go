package inventory

import (
	"strings"

	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// PeerInfo has the data about all nodes of a site that the nodes of a host get in /etc/orrery. The
// host adds the SSH host keys.
type PeerInfo struct {
	Peers []Peer `json:"peers"` // all nodes of the site
	// Hosts are hosts(5) files, by the networks of the nodes that read them.
	Hosts      map[string][]byte `json:"hosts"`
	Inventory  []byte            `json:"inventory"` // inventory.json
	Recipients []Recipient       `json:"told"`      // the nodes that get the data
	// HostNames are the lines by which the host knows its nodes.
	HostNames []byte `json:"host_names,omitempty"`
}

// A Peer is a node with all names by which others know it.
type Peer struct {
	Node  string   `json:"node"`
	Known []string `json:"known"`
}

// Recipient is a node that gets data about its peers.
type Recipient struct {
	Site  string `json:"site"` // the key
	ID    int    `json:"id"`
	Hosts string `json:"hosts"` // key in PeerInfo.Hosts
}

// A Builder creates the PeerInfo of a site. It computes the common part once, because computing it for
// each node would take quadratic time.
type Builder struct {
	site  *site.Site
	names PeerInfo
}

// NewBuilder returns the Builder of a site.
func NewBuilder(s *site.Site) *Builder {
	t := &Builder{site: s, names: PeerInfo{Hosts: map[string][]byte{}, Inventory: JSON(s)}}
	for i := range s.Nodes {
		t.names.Peers = append(t.names.Peers, Peer{s.Nodes[i].Name, knownAs(s.Name, &s.Nodes[i])})
	}
	return t
}

// Build returns the PeerInfo for some nodes of the site.
func (t *Builder) Build(nodes ...*site.Node) *PeerInfo {
	n := &PeerInfo{Peers: t.names.Peers, Hosts: map[string][]byte{}, Inventory: t.names.Inventory}
	for _, node := range nodes {
		networks := node.Networks()
		on := strings.Join(networks, " ")
		if _, made := t.names.Hosts[on]; !made {
			t.names.Hosts[on] = spec.HostsFile(t.site, networks)
		}
		n.Hosts[on] = t.names.Hosts[on]
		n.Recipients = append(n.Recipients, Recipient{t.site.Key(), node.FullID(), on})
	}
	return n
}

// knownAs returns all names and addresses by which clients look up a node's SSH host key.
func knownAs(name string, n *site.Node) []string {
	names := []string{n.Name, n.Name + "." + name}
	for _, nic := range n.NICs {
		names = append(names, n.Name+"."+nic.Network+"."+name, nic.Address.String())
	}
	return names
}
