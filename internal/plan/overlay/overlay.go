// Package overlay works out what joins the networks of a site that have nodes on several hosts: VXLANs between
// their bridges, with addresses, sizes of frames and keys.
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
	over  int // what is put before each frame, in bytes
}

// What a VXLAN puts before each frame: Ethernet, VXLAN and UDP headers, and that of IPv4 or IPv6.
const (
	overIPv4 = 14 + 8 + 8 + 20
	overIPv6 = 14 + 8 + 8 + 40

	// What WireGuard puts before and behind that: its own, and the headers of UDP and IPv6.
	encrypted = 32 + 8 + 40
)

// LeastMTU is that of a network: what every host must be able to receive (RFC 791); maxMTU what a
// packet can have: some interfaces say that they take more.
const (
	LeastMTU = 576
	maxMTU   = 65535
)

// Spanning returns the networks of a site whose nodes are on several hosts, with these. What is on
// an interface of the hosts themselves is joined by the wire.
func Spanning(s *site.Site, homes map[string]string) map[string][]string {
	return spread(s, s.Key(), homes)
}

// spread does that for networks that are kept under a key. What is in quarantine is on bridges,
// whatever it is on when it is live.
func spread(s *site.Site, key string, homes map[string]string) map[string][]string {
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

// Joints are what joins the networks of a site that are on several hosts, by network.
type Joints map[string]*span

// joiner works them out.
type joiner struct {
	site  *site.Site
	key   string // what hosts keep the networks under
	homes map[string]string
	hosts map[string]*observe.Host

	warnings []string
}

// Join works out what joins the bridges of networks that are on several hosts, with these nodes on
// them. The networks are the site's, or of a quarantine of it: key says which. Every host that has
// a network is told of all nodes on it, whether they run or not: so what a host has to know changes
// only if the site does. It returns what the user should know, too.
func Join(s *site.Site, key string, hosts []observe.Host, homes map[string]string) (Joints, []string, error) {
	j := joiner{site: s, key: key, homes: homes, hosts: map[string]*observe.Host{}}
	for i := range hosts {
		j.hosts[hosts[i].Name] = &hosts[i]
	}
	joints, err := j.join()
	return joints, j.warnings, err
}

// JoinLive does it for the live networks of a site, with its nodes where they are or would be placed.
func JoinLive(s *site.Site, hosts []observe.Host) (Joints, error) {
	placed, err := place.Place(s, hosts)
	if err != nil {
		return nil, err
	}
	joints, _, err := Join(placed, s.Key(), hosts, placed.Homes())
	return joints, err
}

// On returns a network as a host has it.
func (all Joints) On(host string, n spec.Network) spec.Network {
	if s := all[n.Name]; s != nil {
		n.VXLAN = s.on(host)
	}
	return n
}

// MTUs returns those of the networks, for what spells out nodes on them.
func (all Joints) MTUs() map[string]int {
	mtus := map[string]int{}
	for name, s := range all {
		mtus[name] = s.mtu
	}
	return mtus
}

// A Way is one between two hosts that have networks in common, for packets of the size that the
// largest of these send.
type Way struct {
	Network   string     // that one
	From, To  string     // hosts
	At, There netip.Addr // their addresses
	Size      int        // bytes, the header of IP included
	Over      int        // of these, what is not of the network
}

// Ways returns those between hosts, each one once. Of many hosts on one network, each has a way to some others.
func (all Joints) Ways() []Way {
	found := map[[2]string]Way{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		hosts := slices.Sorted(maps.Keys(s.peers))
		for i, from := range hosts {
			for j := i + 1; j < len(hosts); j++ {
				if apart := min(j-i, len(hosts)-(j-i)); apart > maxWays {
					continue
				}
				w := Way{name, from, hosts[j], at(s.peers[from]), at(s.peers[hosts[j]]), s.mtu + s.over, s.over}
				if best := found[[2]string{from, hosts[j]}]; best.Size < w.Size {
					found[[2]string{from, hosts[j]}] = w
				}
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b Way) int {
		return cmp.Or(strings.Compare(a.From, b.From), strings.Compare(a.To, b.To))
	})
}

// at returns the address at which a host is reached.
func at(p spec.Peer) netip.Addr { return cmp.Or(p.Endpoint, p.Address) }

// maxWays is to how many hosts before it and after it, in the order of names, a host has ways.
const maxWays = 16

func (j *joiner) join() (Joints, error) {
	joints, numbers := Joints{}, map[int]string{}
	all := spread(j.site, j.key, j.homes)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		n, _ := j.site.Network(name)
		if site.KindOf(n.Kind).Routed {
			continue // nothing joins those
		}
		s, err := j.spanOf(n, all[name])
		if err != nil && n.Wired() {
			j.warnings = append(j.warnings,
				fmt.Sprintf("nodes of network %s on different hosts do not reach one another in quarantine, where such a network is on bridges of its own: %v",
					n.Name, err))
			continue
		}
		if err != nil {
			return nil, err
		}
		if other, taken := numbers[s.id]; taken {
			return nil, problem.New(problem.Mistake,
				"networks %s and %s would be told from one another by the same number, %d", other, name, s.id).At("site.toml").
				Try("give one of them another name: a digest of the names happens to be the same")
		}
		numbers[s.id] = name
		joints[name] = s
	}
	return joints, nil
}

func (j *joiner) spanOf(n *site.Network, hosts []string) (*span, error) {
	if n.Wired() { // what is on the wire afterwards takes what that takes
		same := *n
		same.MTU = cmp.Or(n.MTU, spec.UsualMTU)
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
			return nil, problem.New(problem.Mistake, "hosts %s and %s would both be reached at %s", other, name, at).
				At("site.toml").Try("say underlay = with each")
		}
		whose[at] = name
		if s.peers[name], err = j.peer(n, name, at); err != nil {
			return nil, err
		}
		if over != 0 && over != overheadAt(at) {
			return nil, problem.New(problem.Mistake,
				"network %s has nodes on hosts %s, of which some are reached by IPv4 and some by IPv6", n.Name, those(hosts)).
				At("site.toml").Try("say underlay = with them, of one kind")
		}
		over = overheadAt(at)
		if takes == 0 {
			known = false
		} else if least == 0 || takes < least {
			least = takes
		}
	}
	if n.Encrypt { // within, all is IPv6
		over = overIPv6 + encrypted
	}
	switch fits := least - over; {
	case least > 0 && fits < LeastMTU:
		return nil, problem.New(problem.Unable, "network %s: hosts %s take only %d bytes at a time from one another",
			n.Name, those(hosts), least).
			Try("give their interfaces a larger MTU: ip link set … mtu 1500")
	case least > 0 && n.MTU > fits:
		return nil, problem.New(problem.Mistake, "network %s: mtu %d does not fit between hosts %s, which take %d", n.Name,
			n.MTU, those(hosts), fits).At("site.toml").
			Try("mtu = %d, or leave it out; or give the interfaces of the hosts a larger one", fits)
	case n.MTU > 0:
		s.mtu = n.MTU
	case least == 0:
		s.mtu = j.mtuWas(n.Name, spec.UsualMTU-over)
	case !known: // what it took before, it may take again, and maybe no more
		s.mtu = j.mtuWas(n.Name, min(fits, spec.UsualMTU-over))
	default:
		s.mtu = min(fits, spec.UsualMTU)
	}
	s.over = over
	j.addNodes(s, n.Name)
	return s, nil
}

func overheadAt(at netip.Addr) int {
	if at.Is4() {
		return overIPv4
	}
	return overIPv6
}

// addNodes notes which nodes are where.
func (j *joiner) addNodes(s *span, network string) {
	for i := range j.site.Nodes {
		n := &j.site.Nodes[i]
		if p, ok := s.peers[j.homes[n.Name]]; ok && slices.Contains(n.Networks(), network) {
			p.MACs = append(p.MACs, site.MAC(j.site.Name, n.Name, network))
			s.peers[j.homes[n.Name]] = p
		}
	}
}

// peer returns a host as the other hosts on a network see it, which reach it at an address.
func (j *joiner) peer(n *site.Network, name string, at netip.Addr) (spec.Peer, error) {
	if !n.Encrypt {
		return spec.Peer{Address: at}, nil
	}
	p := spec.Peer{Address: site.Inner(j.key, n.Name, at), Endpoint: at}
	if o := j.hosts[name]; o != nil && !o.Unknown {
		p.Key = o.Key
	} else if o != nil {
		p.Key = j.keyWas(at)
	}
	if text, err := base64.StdEncoding.DecodeString(p.Key); err != nil || len(text) != 32 ||
		base64.StdEncoding.EncodeToString(text) != p.Key {
		// decoding passes over ends of lines
		return p, problem.New(problem.Unable, "network %s is encrypted, and the key of host %s is not known", n.Name, name).
			Try("orrery host check tells what is wrong with it; or leave encrypt out")
	}
	for other, o := range j.hosts {
		if other != name && o.Key == p.Key {
			return p, problem.New(problem.Unable,
				"network %s is encrypted, and hosts %s and %s say that they have the same key", n.Name, min(name, other),
				max(name, other)).
				Try("one has a copy of the other's state: remove keys/.wireguard of the site from it")
		}
	}
	return p, nil
}

// keyWas returns the key of a host that does not answer, by what is on record of it; "": there is
// none, or hosts disagree.
func (j *joiner) keyWas(at netip.Addr) string {
	found := map[string]bool{}
	for p := range j.peers {
		if p.Endpoint == at && p.Key != "" {
			found[p.Key] = true
		}
	}
	return only(found)
}

// peers yields what is on record at any host of others on its networks.
func (j *joiner) peers(yield func(spec.Peer) bool) {
	for _, h := range j.hosts {
		for i := range h.Networks {
			peers, _ := h.Networks[i].VXLAN.ReadPeers() // what is no record says nothing
			for _, p := range peers {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// on returns what joins the network's bridge on a host with those on the others; nothing does if it
// is on that alone, or not there.
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
	return spec.VXLAN{ID: s.id, Local: here.Address.String(), Peers: spec.NewPeers(others), Key: here.Key}
}

// mtuWas returns the least MTU that a network has where it is joined already, if no more than
// another fits; that, if it is nowhere.
func (j *joiner) mtuWas(name string, fits int) int {
	for _, h := range j.hosts {
		for i := range h.Networks {
			if n := &h.Networks[i]; n.Site == j.key && n.Name == name && n.VXLAN != (spec.VXLAN{}) && n.MTU >= LeastMTU {
				fits = min(fits, n.MTU)
			}
		}
	}
	return fits
}

// underlay returns the address by which other hosts reach a host, and how many bytes at a time its
// interface takes; 0: nobody knows.
func (j *joiner) underlay(n *site.Network, name string, hosts []string) (at netip.Addr, takes int, err error) {
	h, _ := j.site.Host(name)
	if h == nil {
		h = &site.Host{Name: name}
	}
	addrs := addresses(j.hosts[name])
	at = h.Reached()
	if o := j.hosts[name]; !at.IsValid() && (o == nil || o.Unknown) {
		at = j.underlayWas(name)
	} else if !at.IsValid() {
		at = j.beside(addrs, name, hosts)
	}
	if !at.IsValid() {
		return at, 0, problem.New(problem.Mistake,
			"network %s has nodes on hosts %s, and it is not clear by which of its addresses %s is reached by the others",
			n.Name, those(hosts), name).
			At("site.toml").Try("say it: underlay = \"10.8.1.1\" in [host.%s]", name)
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
			(existing.VXLAN.Local == at.String() || existing.VXLAN.Local == site.Inner(j.key, n.Name, at).String())
	}) {
		return at, 0, nil // it had the address: with a wire that is cut, the host may have lost it for a while
	}
	return at, 0, problem.New(problem.Mistake,
		"network %s has nodes on hosts %s, and none of the interfaces of %s has the address %s", n.Name, those(hosts), name,
		at).
		At("site.toml").Try("say by which of its addresses the other hosts reach it: underlay = … in [host.%s]", name)
}

// underlayWas returns the address by which others reach a host that does not answer, by what is on
// record of its nodes there; the zero Addr: there is none, or they disagree.
func (j *joiner) underlayWas(name string) netip.Addr {
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
			found[at(p)] = true
		}
	}
	return only(found)
}

// only returns what alone is in a set, or the zero value.
func only[K comparable](found map[K]bool) (alone K) {
	if len(found) == 1 {
		for alone = range found {
		}
	}
	return alone
}

// beside returns the only address of a host on a subnet on which others are by what the site says;
// the zero Addr: there is none, or more than one.
func (j *joiner) beside(addrs []address, name string, hosts []string) netip.Addr {
	found := map[netip.Addr]bool{}
	for _, other := range hosts {
		h, ok := j.site.Host(other)
		if !ok || other == name {
			continue
		}
		at := h.Reached()
		for _, a := range addrs {
			if at.IsValid() && a.prefix.Contains(at) && a.prefix.Addr() != at {
				found[a.prefix.Addr()] = true
			}
		}
	}
	return only(found)
}

// An address is one that a host says it has.
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

// those names the hosts of a network in a message.
func those(hosts []string) string {
	if len(hosts) > maxHosts {
		return humanize.List(hosts, maxHosts)
	}
	return strings.Join(hosts, " and ")
}
