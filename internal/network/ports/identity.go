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

// A Node is what a node has on a port, as spec.NIC and spec.Network say it.
type Node struct {
	Site      string // its key
	MAC       string
	Addresses []netip.Prefix // besides the one of IPv6 that follows from the MAC
	Protocols string         // site.FormatProtocols
}

// An Identity is what a node may send as on a port, as the elements of sets have it.
type Identity struct {
	site      string   // digest of its key
	mac       string   // six bytes
	addresses []string // of four bytes
	sixes     []string // addresses of sixteen bytes
	protocols []string // EtherTypes of two bytes
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
	if err != nil || len(mac) != 6 || len(i.addresses) == 0 {
		return Identity{}, problem.New(problem.Failed, "link %s: it has no address, or no hardware address: %v, %q", port,
			n.Addresses, n.MAC)
	}
	return i.Allow(n.Protocols)
}

// Allow returns the identity with other protocols that the node may send besides IP and ARP.
func (i Identity) Allow(protocols string) (Identity, error) {
	all, err := site.ParseProtocols(words(protocols))
	i.protocols = nil
	for _, p := range all {
		i.protocols = append(i.protocols, string(binaryutil.BigEndian.PutUint16(p)))
	}
	return i, err
}

// Allows reports whether the node may send these protocols besides IP and ARP, and no others.
func (i Identity) Allows(protocols string) bool {
	want, err := i.Allow(protocols)
	got := slices.Sorted(slices.Values(i.protocols))
	return err == nil && slices.Equal(got, want.protocols)
}

// IsOf reports whether the node belongs to a site.
func (i Identity) IsOf(site string) bool { return i.site == siteDigest(site) }

func siteDigest(key string) string { return spec.DigestBytes([]byte(key)) }

// keys returns the keys of the elements that say this of a port, by set.
func (i Identity) keys(port string) map[string][]string {
	all := map[string][]string{held.name: {portKey(port)}}
	if i.mac == "" || len(i.addresses) == 0 {
		return all // another program has changed the sets: the port stays shut until it is guarded again
	}
	add := func(s set, with ...string) { all[s.name] = append(all[s.name], portKey(port, with...)) }
	add(macs, i.mac)
	for _, a := range i.addresses {
		add(addresses, a)
		add(own, i.mac, a)
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

// comment is that of the port's element in the set held: whose it is, and a digest of all that the
// sets say of it. By that, Hold sees whether a port is held to something else without reading all
// elements.
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

// words returns those of a list; of "" there are none.
func words(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// linkLocal returns the IPv6 address that every node makes of its MAC (EUI-64, RFC 4291).
func (i Identity) linkLocal() string {
	m := i.mac
	return "\xfe\x80\x00\x00\x00\x00\x00\x00" + string([]byte{m[0] ^ 2}) + m[1:3] + "\xff\xfe" + m[3:]
}
