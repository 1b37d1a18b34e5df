package network

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"orrery/internal/network/ends"
	"orrery/internal/network/vxlan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A Port is the host's end of a node's link to a bridge, with what the node may send as there.
type Port struct{ Link, Bridge, MAC, Address string }

// Ports gives the ports of a node.
func Ports(n *spec.Node) []Port {
	var all []Port
	for _, nic := range n.NICs {
		if n.KindOf(nic) == site.Bridge {
			all = append(all, Port{nic.HostEnd, nic.Bridge, nic.MAC, nic.Address})
		}
	}
	return all
}

// Guard holds ports to their addresses, unless their network lets nodes send as others. It comes before the ports are there: what is said here of a
// port holds for its name, whenever the link is made anew and whatever bridge it is moved to. So nothing has to be done at a switch.
func Guard(ctx context.Context, ports []Port) error {
	unlock, err := lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	all, err := bridges()
	if err != nil {
		return err
	}
	g, err := openGuards()
	if err != nil {
		return err
	}
	for _, p := range ports {
		is, err := p.identity()
		if err != nil {
			return err
		}
		if slices.ContainsFunc(all, func(b bridge) bool { return b.marked && b.mark.Spoof && b.mark.Bridge == p.Bridge }) {
			delete(g.held, p.Link)
		} else {
			g.held[p.Link] = is
		}
	}
	return g.commit()
}

// Unguard forgets ports that are no more.
func Unguard(ctx context.Context, links []string) error {
	unlock, err := lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	g, err := openGuards()
	if err != nil || !g.there {
		return err
	}
	for _, link := range links {
		delete(g.held, link)
	}
	return g.commit()
}

// Unguarded reports whether a port of a network's bridge is not guarded as the network wants it.
func Unguarded(n spec.Network) (bool, error) {
	links, err := ends.Whole(netlink.LinkList)
	if err != nil {
		return false, err
	}
	g, err := openGuards()
	if err != nil {
		return false, err
	}
	return g.lacks(n, links), nil
}

// lacks reports whether a port of a network's bridge is not guarded as the network wants it.
func (g *guards) lacks(n spec.Network, links []netlink.Link) bool {
	return slices.ContainsFunc(portsOn(n, links), func(port string) bool {
		_, held := g.held[port]
		return held == n.Spoof || held && !g.whole
	})
}

// portsOn gives the ports of nodes on a network's bridge.
func portsOn(n spec.Network, links []netlink.Link) []string {
	i := slices.IndexFunc(links, func(l netlink.Link) bool { return l.Attrs().Name == site.BridgeName(n.Site, n.Name) })
	if i < 0 {
		return nil
	}
	var ports []string
	for _, l := range links {
		if l.Attrs().MasterIndex == links[i].Attrs().Index && strings.HasPrefix(l.Attrs().Name, linkPrefix) {
			ports = append(ports, l.Attrs().Name)
		}
	}
	return ports
}

// release lets go the ports of a network whose nodes may send as others. That nodes of one shall be held is for those who know what they are: Guard.
func release(n spec.Network) error {
	if !n.Spoof {
		return nil
	}
	links, err := ends.Whole(netlink.LinkList)
	if err != nil {
		return err
	}
	g, err := openGuards()
	if err != nil || !g.there {
		return err
	}
	for _, port := range portsOn(n, links) {
		delete(g.held, port)
	}
	return g.commit()
}

// releaseAll takes the table away when there is no network left on this host.
func releaseAll() error {
	g, err := openGuards()
	if err != nil || !g.there {
		return err
	}
	clear(g.held)
	return g.commit()
}

// An identity is what a node may send as.
type identity struct {
	mac     string // of six bytes
	address string // of four
}

func (p Port) identity() (identity, error) {
	mac, err := net.ParseMAC(p.MAC)
	address, err2 := netip.ParsePrefix(p.Address)
	if err != nil || err2 != nil || len(mac) != 6 || !address.Addr().Is4() {
		return identity{}, problem.New(problem.Failed, "link %s: %q and %q are no addresses", p.Link, p.MAC, p.Address)
	}
	four := address.Addr().As4()
	return identity{string(mac), string(four[:])}, nil
}

// guards is the table that guards the ports of all bridges of this host, of the family of bridges. Its sets say what each port may send as, and which
// ports are held to that; its rules are always the same.
type guards struct {
	c     *nftables.Conn
	there bool // the table
	whole bool // and all that shall be in it
	held  map[string]identity
	was   map[*nftables.Set]map[string]bool // keys in the table
}

var (
	guardTable = &nftables.Table{Name: tablePrefix + "ports", Family: nftables.TableFamilyBridge}
	heldSet    = &nftables.Set{Table: guardTable, Name: "held", KeyType: nftables.TypeIFName}
	macSet     = &nftables.Set{Table: guardTable, Name: "macs", Concatenation: true,
		KeyType: nftables.MustConcatSetType(nftables.TypeIFName, nftables.TypeEtherAddr)}
	addressSet = &nftables.Set{Table: guardTable, Name: "addresses", Concatenation: true,
		KeyType: nftables.MustConcatSetType(nftables.TypeIFName, nftables.TypeIPAddr)}
	ownSet = &nftables.Set{Table: guardTable, Name: "own", Concatenation: true,
		KeyType: nftables.MustConcatSetType(nftables.TypeIFName, nftables.TypeEtherAddr, nftables.TypeIPAddr)}
	guardSets = []*nftables.Set{heldSet, macSet, addressSet, ownSet}
)

func guardChain() *nftables.Chain {
	open, early := nftables.ChainPolicyAccept, nftables.ChainPriority(-300)
	return &nftables.Chain{
		Name: prerouting, Table: guardTable, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookPrerouting, Priority: &early, Policy: &open,
	}
}

// A guardRule is a rule of the table, with what nft(8) would call it.
type guardRule struct {
	why   string
	exprs []expr.Any
}

func guardRules() []guardRule {
	link := &expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1} // and what it is joined with comes into register 2
	load := func(base expr.PayloadBase, offset, length uint32) *expr.Payload {
		return &expr.Payload{DestRegister: 2, Base: base, Offset: offset, Len: length}
	}
	notIn := func(s *nftables.Set) *expr.Lookup {
		return &expr.Lookup{SourceRegister: 1, SetName: s.Name, SetID: s.ID, Invert: true}
	}
	// As it came over the wire: of what is tagged, the tag's.
	protocol := func(p uint16) []expr.Any {
		return []expr.Any{&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseLLHeader, Offset: 12, Len: 2}, equal([]byte{byte(p >> 8), byte(p)})}
	}
	dropped := []expr.Any{&expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop}}
	ip := slices.Concat(protocol(unix.ETH_P_IP), []expr.Any{link, load(expr.PayloadBaseLLHeader, 6, 6),
		&expr.Payload{DestRegister: unix.NFT_REG32_06, Base: expr.PayloadBaseNetworkHeader, Offset: 12, Len: 4}}) // the half of register 2 that a MAC leaves free
	rules := []guardRule{
		// Nearly all that is sent: it need not meet the others.
		{"other hosts", []expr.Any{link, equal([]byte(vxlan.Prefix)), &expr.Verdict{Kind: expr.VerdictAccept}}},
		{"IP of its own", append(ip, &expr.Lookup{SourceRegister: 1, SetName: ownSet.Name, SetID: ownSet.ID}, &expr.Verdict{Kind: expr.VerdictAccept})},
		{"not held", []expr.Any{link, notIn(heldSet), &expr.Verdict{Kind: expr.VerdictAccept}}},
		{"MAC of another", []expr.Any{link, load(expr.PayloadBaseLLHeader, 6, 6), notIn(macSet)}},
		{"IP of another", append(protocol(unix.ETH_P_IP), link, load(expr.PayloadBaseNetworkHeader, 12, 4), notIn(addressSet))},
		{"ARP with the MAC of another", append(protocol(unix.ETH_P_ARP), link, load(expr.PayloadBaseNetworkHeader, 8, 6), notIn(macSet))},
		{"ARP that asks before it has an address", append(protocol(unix.ETH_P_ARP),
			&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: 14, Len: 4}, equal(make([]byte, 4)), &expr.Verdict{Kind: expr.VerdictAccept})},
		{"ARP with the IP of another", append(protocol(unix.ETH_P_ARP), link, load(expr.PayloadBaseNetworkHeader, 14, 4), notIn(addressSet))},
	}
	for _, tagged := range []uint16{unix.ETH_P_8021Q, unix.ETH_P_8021AD, unix.ETH_P_QINQ1, unix.ETH_P_QINQ2, unix.ETH_P_QINQ3} {
		rules = append(rules, guardRule{"VLAN tag", protocol(tagged)})
	}
	for i, r := range rules {
		if _, ends := r.exprs[len(r.exprs)-1].(*expr.Verdict); !ends {
			rules[i].exprs = append(r.exprs, dropped...)
		}
	}
	return rules
}

// openGuards reads the table, which need not be there.
func openGuards() (*guards, error) {
	c, err := nftables.New()
	if err != nil {
		return nil, unusable(err)
	}
	g := &guards{c: c, held: map[string]identity{}, was: map[*nftables.Set]map[string]bool{}}
	tables, err := c.ListTablesOfFamily(nftables.TableFamilyBridge)
	if err != nil {
		return nil, unguardable(err)
	}
	if !slices.ContainsFunc(tables, func(t *nftables.Table) bool { return t.Name == guardTable.Name }) {
		return g, nil
	}
	g.there = true
	there, err := comments(guardTable)
	if err != nil {
		there = nil // it went while we looked
	}
	var shall []string
	for _, r := range guardRules() {
		shall = append(shall, prerouting+" "+r.why)
	}
	g.whole = slices.Equal(there, shall)
	for _, s := range guardSets {
		elements, err := c.GetSetElements(s)
		if err != nil {
			g.whole = false // somebody has taken it away
			continue
		}
		g.was[s] = map[string]bool{}
		for _, e := range elements {
			g.was[s][string(e.Key)] = true
			if s != ownSet { // which says the same once more
				g.read(s, e.Key)
			}
		}
	}
	return g, nil
}

func (g *guards) read(s *nftables.Set, key []byte) {
	if len(key) < unix.IFNAMSIZ {
		return
	}
	link := string(bytes.TrimRight(key[:unix.IFNAMSIZ], "\x00"))
	is, rest := g.held[link], key[unix.IFNAMSIZ:]
	switch {
	case s == macSet && len(rest) >= 6:
		is.mac = string(rest[:6])
	case s == addressSet && len(rest) >= 4:
		is.address = string(rest[:4])
	}
	g.held[link] = is
}

// keys gives what shall be in the sets.
func (g *guards) keys() map[*nftables.Set]map[string]bool {
	held, macs, addresses, own := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for link, is := range g.held {
		held[linkKey(link)] = true
		macs[linkKey(link, is.mac)], addresses[linkKey(link, is.address)] = true, true
		own[linkKey(link, is.mac, is.address)] = true
	}
	return map[*nftables.Set]map[string]bool{heldSet: held, macSet: macs, addressSet: addresses, ownSet: own}
}

// commit brings the table, in one transaction, to what is held. Where there is nobody to hold there is none.
func (g *guards) commit() error {
	if len(g.held) == 0 && !g.there {
		return nil
	}
	keys := g.keys()
	if len(g.held) == 0 || !g.whole {
		g.c.AddTable(guardTable) // so that there is one to delete
		g.c.DelTable(guardTable)
		g.was = nil
	}
	if len(g.held) > 0 && !g.whole {
		g.c.AddTable(guardTable)
		for _, s := range guardSets {
			if err := g.c.AddSet(s, nil); err != nil {
				return err
			}
		}
		chain := g.c.AddChain(guardChain())
		for _, r := range guardRules() {
			g.c.AddRule(&nftables.Rule{
				Table: guardTable, Chain: chain, Exprs: r.exprs, UserData: userdata.AppendString(nil, userdata.TypeComment, r.why),
			})
		}
	}
	if len(g.held) > 0 {
		for _, s := range guardSets {
			if err := change(s, g.was[s], keys[s], g.c.SetDeleteElements); err != nil {
				return err
			}
			if err := change(s, keys[s], g.was[s], g.c.SetAddElements); err != nil {
				return err
			}
		}
	}
	if err := g.c.Flush(); err != nil {
		return unguardable(err)
	}
	return nil
}

// change does something with the keys that are in one set and not in another, as many at a time as one message takes.
func change(s *nftables.Set, in, notIn map[string]bool, what func(*nftables.Set, []nftables.SetElement) error) error {
	var some []nftables.SetElement
	for key := range in {
		if !notIn[key] {
			some = append(some, nftables.SetElement{Key: []byte(key)})
		}
	}
	for chunk := range slices.Chunk(some, 256) {
		if err := what(s, chunk); err != nil {
			return err
		}
	}
	return nil
}

// linkKey gives the key of an element: the name of a link and what it is joined with, each in whole words of four bytes.
func linkKey(link string, with ...string) string {
	key := make([]byte, unix.IFNAMSIZ)
	copy(key, link)
	for _, w := range with {
		key = append(append(key, w...), make([]byte, -len(w)&3)...)
	}
	return string(key)
}

func unguardable(err error) error {
	return problem.New(problem.Unable, "the ports of bridges cannot be guarded: nf_tables of this kernel does not know bridges").Because(err).
		Try("modprobe nf_tables_bridge; or let the nodes of a network send as others, with spoof = true")
}
