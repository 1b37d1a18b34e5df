package spec

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// A VXLAN joins a network's bridge on one host with its bridges on other hosts.
type VXLAN struct {
	ID    int    `json:"id"`    // site.VNI
	Local string `json:"local"` // address at which the other hosts reach this one
	Peers string `json:"peers"` // the other hosts, in the form of FormatPeers
	// Key is the public key of this host if the traffic to the other hosts is encrypted, or "".
	Key string `json:"key,omitempty"`
}

// A Peer is another host with the same network.
type Peer struct {
	Address netip.Addr
	MACs    []string // of the nodes on that host

	// Endpoint and Key are set on an encrypted network: the outer address of the host, and its
	// public key. Address is then the inner address.
	Endpoint netip.Addr
	Key      string
}

// FormatPeers encodes peers in a canonical form: "ADDRESS MAC MAC…", separated by ";". On an encrypted
// network each is "ADDRESS|ENDPOINT|KEY MAC MAC…".
func FormatPeers(peers []Peer) string {
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

// ParsePeers decodes the peers of a VXLAN.
func (v VXLAN) ParsePeers() ([]Peer, error) {
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

// Hosts returns the addresses of the other hosts, separated by spaces.
func (v VXLAN) Hosts() string {
	var all []string
	for text := range strings.SplitSeq(v.Peers, ";") {
		address, _, _ := strings.Cut(text, " ")
		all = append(all, address)
	}
	return strings.Join(all, " ")
}
