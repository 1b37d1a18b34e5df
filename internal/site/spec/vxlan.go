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
}

// A Peer is another host that a network is on.
type Peer struct {
	Address netip.Addr
	MACs    []string // of the nodes there
}

// NewPeers writes peers down, the same ones always alike: "ADDRESS MAC MAC…", with ";" between them.
func NewPeers(peers []Peer) string {
	peers = slices.SortedFunc(slices.Values(peers), func(a, b Peer) int { return a.Address.Compare(b.Address) })
	var all []string
	for _, p := range peers {
		all = append(all, strings.Join(append([]string{p.Address.String()}, slices.Sorted(slices.Values(p.MACs))...), " "))
	}
	return strings.Join(all, ";")
}

// ReadPeers gives the peers of a VXLAN.
func (v VXLAN) ReadPeers() ([]Peer, error) {
	if v.Peers == "" {
		return nil, nil
	}
	var all []Peer
	for text := range strings.SplitSeq(v.Peers, ";") {
		words := strings.Split(text, " ")
		address, err := netip.ParseAddr(words[0])
		if err != nil {
			return nil, fmt.Errorf("%q is not the address of a host", words[0])
		}
		all = append(all, Peer{address, words[1:]})
	}
	return all, nil
}

// Hosts gives the addresses of the other hosts.
func (v VXLAN) Hosts() string {
	var all []string
	for text := range strings.SplitSeq(v.Peers, ";") {
		address, _, _ := strings.Cut(text, " ")
		all = append(all, address)
	}
	return strings.Join(all, " ")
}
