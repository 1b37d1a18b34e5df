package spec

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// A VXLAN is what joins the bridge that a network has on a host with those on others.
type VXLAN struct {
	ID    int    `json:"id"`    // site.VNI
	Local string `json:"local"` // address of this host, as the others reach it
	Peers string `json:"peers"` // the others: NewPeers
	// public key of this host, where all is encrypted that goes to the others; "": it is not
	Key string `json:"key,omitempty"`
}

// A Peer is another host that a network is on.
type Peer struct {
	Address netip.Addr
	MACs    []string // of the nodes there

	// Of an encrypted network, Address is one within: this is where the host is reached, and its public key.
	Endpoint netip.Addr
	Key      string
}

// NewPeers writes peers down, the same ones always alike: "ADDRESS MAC MAC…", with ";" between
// them, and "ADDRESS|ENDPOINT|KEY MAC MAC…" of an encrypted network.
func NewPeers(peers []Peer) string {
	peers = slices.SortedFunc(slices.Values(peers), func(a, b Peer) int { return a.Address.Compare(b.Address) })
	var all []string
	for _, p := range peers {
		all = append(all, strings.Join(append([]string{p.name()}, slices.Sorted(slices.Values(p.MACs))...), " "))
	}
	return strings.Join(all, ";")
}

func (p *Peer) name() string {
	if p.Key == "" {
		return p.Address.String()
	}
	return p.Address.String() + "|" + p.Endpoint.String() + "|" + p.Key
}

// ReadPeers returns the peers of a VXLAN.
func (v VXLAN) ReadPeers() ([]Peer, error) {
	if v.Peers == "" {
		return nil, nil
	}
	var all []Peer
	for text := range strings.SplitSeq(v.Peers, ";") {
		words := strings.Split(text, " ")
		parts := strings.Split(words[0], "|")
		address, err := netip.ParseAddr(parts[0])
		p := Peer{Address: address, MACs: words[1:]}
		if len(parts) == 3 && err == nil {
			p.Key = parts[2]
			p.Endpoint, err = netip.ParseAddr(parts[1])
		}
		if err != nil || len(parts) != 1 && len(parts) != 3 {
			return nil, fmt.Errorf("%q is not the address of a host", words[0])
		}
		all = append(all, p)
	}
	return all, nil
}

// Hosts returns the addresses of the other hosts.
func (v VXLAN) Hosts() string {
	var all []string
	for text := range strings.SplitSeq(v.Peers, ";") {
		address, _, _ := strings.Cut(text, " ")
		all = append(all, address)
	}
	return strings.Join(all, " ")
}
