// Package overlay determines how networks with nodes on several hosts are joined. Their bridges are
// joined by VXLANs, with addresses, MTUs and keys.
package overlay

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"orrery/internal/observe"
	"orrery/internal/plan/place"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/text/humanize"
)

// A span is a network with nodes on several hosts. A VXLAN joins its bridges there.
type span struct {
	id    int
	peers map[string]spec.Peer // by host
	mtu   int
	over  int // bytes of encapsulation before each frame
}

// The headers that a VXLAN puts before each frame: Ethernet, VXLAN and UDP, and IPv4 or IPv6.
const (
	overheadIPv4 = 14 + 8 + 8 + 20
	overheadIPv6 = 14 + 8 + 8 + 40

	// What WireGuard adds before and after that: its own data, and the headers of UDP and IPv6.
	overheadWireGuard = 32 + 8 + 40
)

// MinMTU is the smallest MTU of a network: what every host must be able to receive (RFC 791).
// maxMTU is the largest possible packet size, since some interfaces report an MTU above it.
const (
	MinMTU = 576
	maxMTU = 65535
)

// Spanning returns the networks of a site whose nodes are on several hosts, with these hosts.
// Networks on an interface of the host are left out, since the wire joins them.
func Spanning(s *site.Site, homes map[string]string) map[string][]string {
	return spanningUnder(s, s.Key(), homes)
}

// spanningUnder is like Spanning, for networks recorded under a key. A network in quarantine is on
// bridges, even if it is on an interface of the host when it is live.
func spanningUnder(s *site.Site, key string, homes map[string]string) map[string][]string {
	apart := s.Stage != 0 || key != s.Key()
	on := map[string]map[string]bool{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		for _, nic := range n.NICs {
			network, ok := s.Network(nic.Network)
			if !ok || homes[n.Name] == "" || !apart && network.Wired() {
				continue
			}
			if on[nic.Network] == nil {
				on[nic.Network] = map[string]bool{}
			}
			on[nic.Network][homes[n.Name]] = true
		}
	}
	spanning := map[string][]string{}
	for network, hosts := range on {
		if len(hosts) > 1 {
			spanning[network] = slices.Sorted(maps.Keys(hosts))
		}
	}
	return spanning
}

// Spans are the spans of a site's networks that are on several hosts, by network.
type Spans map[string]*span

// A spanPlanner determines the Spans of a site.
type spanPlanner struct {
	site  *site.Site
	key   string // key under which hosts record the networks
	homes map[string]string
	hosts map[string]*observe.Host

	warnings []string
}

// Join determines how the bridges of networks on several hosts are joined. The networks are the
// site's, or those of its quarantine, as key says. Every host that has a network is told of all
// nodes on it, whether they run or not, so its configuration changes only if the site does. Join
// also returns warnings for the user.
func Join(s *site.Site, key string, hosts []observe.Host, homes map[string]string) (Spans, []string, error) {
	j := spanPlanner{site: s, key: key, homes: homes, hosts: map[string]*observe.Host{}}
	for i := range hosts {
		j.hosts[hosts[i].Name] = &hosts[i]
	}
	joints, err := j.join()
	return joints, j.warnings, err
}

// JoinLive is like Join for the live networks of a site, with its nodes where they are or would be
// placed.
func JoinLive(s *site.Site, hosts []observe.Host) (Spans, error) {
	placed, err := place.Assign(s, hosts)
	if err != nil {
		return nil, err
	}
	joints, _, err := Join(placed, s.Key(), hosts, placed.HostByNode())
	return joints, err
}

// On returns a network as a host has it, with its VXLAN.
func (all Spans) On(host string, n spec.Network) spec.Network {
	if s := all[n.Name]; s != nil {
		n.VXLAN = s.on(host)
	}
	return n
}

// MTUs returns the MTUs of the networks, for a spec.Builder.
func (all Spans) MTUs() map[string]int {
	mtus := map[string]int{}
	for name, s := range all {
		mtus[name] = s.mtu
	}
	return mtus
}

// A Path is the path between two hosts that have networks in common. Its packets have the size that
// the network with the largest packets sends.
type Path struct {
	Network   string     // network with the largest packets
	From, To  string     // hosts
	At, There netip.Addr // their addresses
	Size      int        // bytes, including the IP header
	Over      int        // bytes of these that are encapsulation
}

// Paths returns the paths between hosts, each one once. If a network has many hosts, each host has
// paths to some of the others only.
func (all Spans) Paths() []Path {
	found := map[[2]string]Path{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		hosts := slices.Sorted(maps.Keys(s.peers))
		for i, from := range hosts {
			for j := i + 1; j < len(hosts); j++ {
				if apart := min(j-i, len(hosts)-(j-i)); apart > maxPaths {
					continue
				}
				w := Path{name, from, hosts[j], endpointOf(s.peers[from]), endpointOf(s.peers[hosts[j]]), s.mtu + s.over, s.over}
				if best := found[[2]string{from, hosts[j]}]; best.Size < w.Size {
					found[[2]string{from, hosts[j]}] = w
				}
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b Path) int {
		return cmp.Or(strings.Compare(a.From, b.From), strings.Compare(a.To, b.To))
	})
}

// endpointOf returns the address at which a host is reached.
func endpointOf(p spec.Peer) netip.Addr { return cmp.Or(p.Endpoint, p.Address) }

// maxPaths is the number of hosts before and after it, in the order of names, to which a host has
// paths.
const maxPaths = 16

func (j *spanPlanner) join() (Spans, error) {
	joints, numbers := Spans{}, map[int]string{}
	all := spanningUnder(j.site, j.key, j.homes)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		n, _ := j.site.Network(name)
		if site.KindOf(n.Kind).Routed {
			continue // routed networks are not joined
		}
		s, err := j.spanOf(n, all[name])
		if err != nil && n.Wired() {
			j.warnings = append(j.warnings,
				fmt.Sprintf("nodes of network %s on different hosts cannot reach one another in quarantine, where the network has its own bridges: %v",
					n.Name, err))
			continue
		}
		if err != nil {
			return nil, err
		}
		if other, taken := numbers[s.id]; taken {
			return nil, problem.New(problem.Mistake,
				"networks %s and %s would have the same VXLAN number, %d", other, name, s.id).At("site.toml").
				Try("give one of them another name: the digests of the names collide")
		}
		numbers[s.id] = name
		joints[name] = s
	}
	return joints, nil
}

func (j *spanPlanner) spanOf(n *site.Network, hosts []string) (*span, error) {
	if n.Wired() { // once live, it uses the wire and the wire's MTU
		same := *n
		same.MTU = cmp.Or(n.MTU, spec.DefaultMTU)
		n = &same
	}
	s := &span{id: site.VNI(j.key, n.Name), peers: map[string]spec.Peer{}}
	least, over, known, whose := 0, 0, true, map[netip.Addr]string{}
	for _, name := range hosts {
		at, takes, err := j.underlay(n, name, hosts)
		if err != nil {
			return nil, err
		}
		if other, taken := whose[at]; taken {
			return nil, problem.New(problem.Mistake, "hosts %s and %s have the same underlay address %s", other, name,
				at).
				At("site.toml").Try("set underlay = for each")
		}
		whose[at] = name
		if s.peers[name], err = j.peer(n, name, at); err != nil {
			return nil, err
		}
		if over != 0 && over != overheadAt(at) {
			return nil, problem.New(problem.Mistake,
				"network %s has nodes on hosts %s, some reached by IPv4 and some by IPv6", n.Name, hostList(hosts)).
				At("site.toml").Try("set underlay = for them, all IPv4 or all IPv6")
		}
		over = overheadAt(at)
		if takes == 0 {
			known = false
		} else if least == 0 || takes < least {
			least = takes
		}
	}
	if n.Encrypt { // the inner packets are always IPv6
		over = overheadIPv6 + overheadWireGuard
	}
	switch fits := least - over; {
	case least > 0 && fits < MinMTU:
		return nil, problem.New(problem.Unable, "network %s: the MTU between hosts %s is only %d",
			n.Name, hostList(hosts), least).
			Try("give their interfaces a larger MTU: ip link set … mtu 1500")
	case least > 0 && n.MTU > fits:
		return nil, problem.New(problem.Mistake,
			"network %s: mtu %d is too large between hosts %s, where at most %d fit", n.Name,
			n.MTU, hostList(hosts), fits).At("site.toml").
			Try("write mtu = %d, or remove it; or give the interfaces of the hosts a larger MTU", fits)
	case n.MTU > 0:
		s.mtu = n.MTU
	case least == 0:
		s.mtu = j.recordedMTU(n.Name, spec.DefaultMTU-over)
	case !known: // the previous MTU may be right again, but a larger one may not
		s.mtu = j.recordedMTU(n.Name, min(fits, spec.DefaultMTU-over))
	default:
		s.mtu = min(fits, spec.DefaultMTU)
	}
	s.over = over
	j.addNodes(s, n.Name)
	return s, nil
}

func overheadAt(at netip.Addr) int {
	if at.Is4() {
		return overheadIPv4
	}
	return overheadIPv6
}

// addNodes records which nodes are on which host.
func (j *spanPlanner) addNodes(s *span, network string) {
	for i := range j.site.Nodes {
		n := &j.site.Nodes[i]
		if p, ok := s.peers[j.homes[n.Name]]; ok && slices.Contains(n.Networks(), network) {
			p.MACs = append(p.MACs, site.MAC(j.site.Name, n.Name, network))
			s.peers[j.homes[n.Name]] = p
		}
	}
}

// peer returns a host as the other hosts on a network see it. They reach it at an address.
func (j *spanPlanner) peer(n *site.Network, name string, at netip.Addr) (spec.Peer, error) {
	if !n.Encrypt {
		return spec.Peer{Address: at}, nil
	}
	p := spec.Peer{Address: site.InnerAddress(j.key, n.Name, at), Endpoint: at}
	if o := j.hosts[name]; o != nil && !o.Unknown {
		p.Key = o.Key
	} else if o != nil {
		p.Key = j.recordedKey(at)
	}
	if text, err := base64.StdEncoding.DecodeString(p.Key); err != nil || len(text) != 32 ||
		base64.StdEncoding.EncodeToString(text) != p.Key {
		// DecodeString ignores line breaks.
		return p, problem.New(problem.Unable, "network %s is encrypted, but the key of host %s is unknown", n.Name,
			name).
			Try("orrery host check shows what is wrong with it; or remove encrypt")
	}
	for other, o := range j.hosts {
		if other != name && o.Key == p.Key {
			return p, problem.New(problem.Unable,
				"network %s is encrypted, but hosts %s and %s report the same key", n.Name, min(name, other),
				max(name, other)).
				Try("one has a copy of the other's state: remove keys/.wireguard of the site there")
		}
	}
	return p, nil
}

// recordedKey returns the recorded key of a host that does not answer, or "" if there is none or the
// other hosts' records differ.
func (j *spanPlanner) recordedKey(at netip.Addr) string {
	found := map[string]bool{}
	for p := range j.peers {
		if p.Endpoint == at && p.Key != "" {
			found[p.Key] = true
		}
	}
	return onlyElement(found)
}

// peers yields the peers that any host has recorded for its networks.
func (j *spanPlanner) peers(yield func(spec.Peer) bool) {
	for _, h := range j.hosts {
		for i := range h.Networks {
			peers, _ := h.Networks[i].VXLAN.ParsePeers() // an unreadable record is ignored
			for _, p := range peers {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// on returns the VXLAN that joins the network's bridge on a host with the other hosts. It returns
// the zero value if the network is not on the host.
func (s *span) on(host string) spec.VXLAN {
	here, ok := s.peers[host]
	if !ok {
		return spec.VXLAN{}
	}
	var others []spec.Peer
	for name, p := range s.peers {
		if name != host {
			others = append(others, p)
		}
	}
	return spec.VXLAN{ID: s.id, Local: here.Address.String(), Peers: spec.FormatPeers(others), Key: here.Key}
}

// recordedMTU returns the smallest MTU that the network has on a host where it is joined already, or
// fits if that is smaller or the network is joined nowhere.
func (j *spanPlanner) recordedMTU(name string, fits int) int {
	for _, h := range j.hosts {
		for i := range h.Networks {
			if n := &h.Networks[i]; n.Site == j.key && n.Name == name && n.VXLAN != (spec.VXLAN{}) && n.MTU >= MinMTU {
				fits = min(fits, n.MTU)
			}
		}
	}
	return fits
}

// underlay returns the address at which other hosts reach a host, and the MTU of its interface, or
// 0 if unknown.
func (j *spanPlanner) underlay(n *site.Network, name string, hosts []string) (at netip.Addr, takes int, err error) {
	h, _ := j.site.Host(name)
	if h == nil {
		h = &site.Host{Name: name}
	}
	addrs := addresses(j.hosts[name])
	at = h.UnderlayAddress()
	if o := j.hosts[name]; !at.IsValid() && (o == nil || o.Unknown) {
		at = j.recordedUnderlay(name)
	} else if !at.IsValid() {
		at = j.addrOnSharedSubnet(addrs, name, hosts)
	}
	if !at.IsValid() {
		return at, 0, problem.New(problem.Mistake,
			"network %s has nodes on hosts %s, but %s has several addresses at which they might reach it",
			n.Name, hostList(hosts), name).
			At("site.toml").Try("write underlay = \"10.8.1.1\" in [host.%s]", name)
	}
	if o := j.hosts[name]; o != nil && o.Unknown {
		return at, 0, nil
	}
	for _, a := range addrs {
		if a.prefix.Addr() == at {
			return at, a.mtu, nil
		}
	}
	if o := j.hosts[name]; o != nil && slices.ContainsFunc(o.Networks, func(existing observe.Network) bool {
		return existing.Site == j.key && existing.Name == n.Name &&
			(existing.VXLAN.Local == at.String() || existing.VXLAN.Local == site.InnerAddress(j.key, n.Name, at).String())
	}) {
		return at, 0, nil // the host had the address before, and may have lost it while a wire is cut
	}
	return at, 0, problem.New(problem.Mistake,
		"network %s has nodes on hosts %s, but no interface of %s has the address %s", n.Name, hostList(hosts),
		name,
		at).
		At("site.toml").Try("set the address at which the other hosts reach it: underlay = … in [host.%s]", name)
}

// recordedUnderlay returns the address at which others reach a host that does not answer, from their
// records of its nodes. It returns the zero Addr if there is none or the records differ.
func (j *spanPlanner) recordedUnderlay(name string) netip.Addr {
	theirs := map[string]bool{}
	for i := range j.site.Nodes {
		if n := &j.site.Nodes[i]; j.homes[n.Name] == name {
			for _, network := range n.Networks() {
				theirs[site.MAC(j.site.Name, n.Name, network)] = true
			}
		}
	}
	found := map[netip.Addr]bool{}
	for p := range j.peers {
		if slices.ContainsFunc(p.MACs, func(mac string) bool { return theirs[mac] }) {
			found[endpointOf(p)] = true
		}
	}
	return onlyElement(found)
}

// onlyElement returns the only element of a set, or the zero value.
func onlyElement[K comparable](found map[K]bool) (alone K) {
	if len(found) == 1 {
		for alone = range found {
		}
	}
	return alone
}

// addrOnSharedSubnet returns the only address of a host on a subnet that contains the declared address of
// another host. It returns the zero Addr if there is none or more than one.
func (j *spanPlanner) addrOnSharedSubnet(addrs []address, name string, hosts []string) netip.Addr {
	found := map[netip.Addr]bool{}
	for _, other := range hosts {
		h, ok := j.site.Host(other)
		if !ok || other == name {
			continue
		}
		at := h.UnderlayAddress()
		for _, a := range addrs {
			if at.IsValid() && a.prefix.Contains(at) && a.prefix.Addr() != at {
				found[a.prefix.Addr()] = true
			}
		}
	}
	return onlyElement(found)
}

// An address is an address that a host reports.
type address struct {
	prefix netip.Prefix
	mtu    int
}

func addresses(h *observe.Host) []address {
	if h == nil {
		return nil
	}
	var all []address
	for _, a := range h.Addresses {
		if p, err := netip.ParsePrefix(a.Prefix); err == nil && a.MTU > 0 {
			all = append(all, address{p, min(a.MTU, maxMTU)})
		}
	}
	return all
}

// maxHosts is how many hosts a message names.
const maxHosts = 4

// hostList returns the names of a network's hosts for a message.
func hostList(hosts []string) string {
	if len(hosts) > maxHosts {
		return humanize.List(hosts, maxHosts)
	}
	return strings.Join(hosts, " and ")
}
