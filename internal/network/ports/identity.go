package ports

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/nftables/binaryutil"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A Node is the identity of a node on a port, in the format of spec.NIC and spec.Network.
type Node struct {
	Site      string // the site's key
	MAC       string
	Addresses []netip.Prefix // in addition to the IPv6 address derived from the MAC
	Moving    []netip.Addr   // IPv4 addresses of services, which it may send from while it holds them
	Protocols string         // site.FormatProtocols
}

// An Identity is what a node may send as on a port, in the format of set elements.
type Identity struct {
	site      string   // digest of the site's key
	mac       string   // six bytes
	addresses []string // four bytes each
	sixes     []string // IPv6, sixteen bytes each
	protocols []string // EtherTypes, two bytes each
	moving    []string // four bytes each
}

// Identify returns what a node may send as on a port.
func Identify(port string, n Node) (Identity, error) {
	mac, err := net.ParseMAC(n.MAC)
	i := Identity{site: siteDigest(n.Site), mac: string(mac)}
	for _, p := range n.Addresses {
		if a := p.Addr(); a.Is4() {
			i.addresses = append(i.addresses, string(a.AsSlice()))
		} else if a.Is6() {
			i.sixes = append(i.sixes, string(a.AsSlice()))
		}
	}
	for _, a := range n.Moving {
		if a.Is4() {
			i.moving = append(i.moving, string(a.AsSlice()))
		}
	}
	if err != nil || len(mac) != 6 || len(i.addresses) == 0 {
		return Identity{}, problem.New(problem.Failed, "link %s: its address or hardware address is missing: %v, %q", port,
			n.Addresses, n.MAC)
	}
	return i.Allow(n.Protocols)
}

// Allow returns the identity with other protocols that the node may send in addition to IP and ARP.
func (i Identity) Allow(protocols string) (Identity, error) {
	all, err := site.ParseProtocols(words(protocols))
	i.protocols = nil
	for _, p := range all {
		i.protocols = append(i.protocols, string(binaryutil.BigEndian.PutUint16(p)))
	}
	return i, err
}

// Allows reports whether the node may send exactly these protocols in addition to IP and ARP.
func (i Identity) Allows(protocols string) bool {
	want, err := i.Allow(protocols)
	got := slices.Sorted(slices.Values(i.protocols))
	return err == nil && slices.Equal(got, want.protocols)
}

// IsOf reports whether the node belongs to a site.
func (i Identity) IsOf(site string) bool { return i.site == siteDigest(site) }

func siteDigest(key string) string { return spec.DigestBytes([]byte(key)) }

// keys returns, by set, the keys of the elements that describe a port.
func (i Identity) keys(port string) map[string][]string {
	all := map[string][]string{held.name: {portKey(port)}}
	if i.mac == "" || len(i.addresses) == 0 {
		return all // another program has changed the sets: the port stays blocked until it is guarded again
	}
	add := func(s set, with ...string) { all[s.name] = append(all[s.name], portKey(port, with...)) }
	add(macs, i.mac)
	for _, a := range i.addresses {
		add(addresses, a)
		add(own, i.mac, a)
	}
	for _, a := range i.moving {
		add(moving, i.mac, a)
		add(movingARP, a)
	}
	add(own6, i.linkLocal())
	for _, a := range i.sixes {
		add(own6, a)
	}
	for _, p := range i.protocols {
		add(protocols, p)
	}
	return all
}

// comment returns the comment of the port's element in the set held: the site's digest, and a
// digest of everything that the sets list for the port. With it, AddPorts detects other entries without
// reading all elements.
func (i Identity) comment(port string) string {
	var all []string
	for name, keys := range i.keys(port) {
		for _, key := range keys {
			all = append(all, name+" "+key)
		}
	}
	slices.Sort(all)
	return i.site + " " + spec.DigestBytes([]byte(strings.Join(slices.Compact(all), "\n")))
}

// words returns the words of a comma-separated list, or nil for "".
func words(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// linkLocal returns the IPv6 link-local address that every node derives from its MAC (EUI-64, RFC
// 4291).
func (i Identity) linkLocal() string {
	m := i.mac
	return "\xfe\x80\x00\x00\x00\x00\x00\x00" + string([]byte{m[0] ^ 2}) + m[1:3] + "\xff\xfe" + m[3:]
}
