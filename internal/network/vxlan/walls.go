package vxlan

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"golang.org/x/sys/unix"

	"orrery/internal/network/ends"
	"orrery/internal/network/wireguard"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// TablePrefix begins the names of the tables of networks that are on several hosts. The rest is the name of their device.
const TablePrefix = "orrery."

func tableName(n spec.Network) string { return TablePrefix + Name(n) }

// A rule is one of the walls. What is no match goes on to the next; after the last, a packet passes.
type rule struct {
	chain string
	why   string
	match []expr.Any
	then  []expr.Any
}

// A wall is a table of rules, in chains that see what goes by at some points.
type wall struct {
	table  *nftables.Table
	chains []*nftables.Chain
	rules  []rule
	hosts  *nftables.Set // of the other hosts
	has    []nftables.SetElement
}

// When chains see what goes by: before Orrery's other rules, which need not look at what is dropped here; or before connections are tracked.
const (
	early    nftables.ChainPriority = -20
	earliest nftables.ChainPriority = -300
)

// chain adds a chain to a wall.
func (w *wall) chain(name string, hook *nftables.ChainHook, when nftables.ChainPriority) {
	open := nftables.ChainPolicyAccept
	w.chains = append(w.chains, &nftables.Chain{Name: name, Table: w.table, Type: nftables.ChainTypeFilter, Hooknum: hook, Priority: &when, Policy: &open})
}

// pass, drop and untrack add rules.
func (w *wall) pass(chain, why string, match ...[]expr.Any) {
	w.rules = append(w.rules, rule{chain, why, slices.Concat(match...), []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}}})
}

func (w *wall) drop(chain, why string, match ...[]expr.Any) {
	w.rules = append(w.rules, rule{chain, why, slices.Concat(match...), dropped})
}

var dropped = []expr.Any{&expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop}}

func (w *wall) untrack(chain, why string, match ...[]expr.Any) {
	w.rules = append(w.rules, rule{chain, why, slices.Concat(match...), []expr.Any{&expr.Notrack{}}})
}

// The chains.
const (
	prerouting = "prerouting"
	input      = "input"
	forward    = "forward"
	output     = "output"
)

// ownLinks begin the names of the host's ends of all links to nodes: of bridges, of links to nodes and to routers. Routed ones begin as bridges do.
var ownLinks = []string{"orb", "orv", "oro"}

// underlay is the wall between hosts. What is of another network, or no VXLAN at all, passes: that is for others to judge.
func underlay(n spec.Network) (*wall, error) {
	local, err := netip.ParseAddr(n.VXLAN.Local)
	if err != nil {
		return nil, err
	}
	peers, err := n.VXLAN.ReadPeers()
	if err != nil {
		return nil, err
	}
	w := &wall{table: &nftables.Table{Name: tableName(n), Family: nftables.TableFamilyINet}}
	w.hosts = &nftables.Set{Table: w.table, Name: "hosts", KeyType: nftables.TypeIPAddr}
	family, source, dest := byte(unix.NFPROTO_IPV4), address(12, 4), address(16, 4)
	if !local.Is4() {
		w.hosts.KeyType = nftables.TypeIP6Addr
		family, source, dest = unix.NFPROTO_IPV6, address(8, 16), address(24, 16)
	}
	for _, p := range peers {
		w.has = append(w.has, nftables.SetElement{Key: p.Address.AsSlice()})
	}
	ip := meta(expr.MetaKeyNFPROTO, equal([]byte{family}))
	ofHosts := []expr.Any{&expr.Lookup{SourceRegister: 1, SetName: w.hosts.Name, SetID: w.hosts.ID}}
	w.chain(prerouting, nftables.ChainHookPrerouting, earliest)
	w.chain(input, nftables.ChainHookInput, early)
	w.chain(forward, nftables.ChainHookForward, early)
	w.chain(output, nftables.ChainHookOutput, earliest)
	udp, port := []byte{unix.IPPROTO_UDP}, binaryutil.BigEndian.PutUint16(Port)
	id := []byte{byte(n.VXLAN.ID >> 16), byte(n.VXLAN.ID >> 8), byte(n.VXLAN.ID)}
	ours := slices.Concat(meta(expr.MetaKeyL4PROTO, equal(udp)), header(2, 2), equal(port), header(12, 3), equal(id))
	// Each connection of a node has a port of its own here: a host would track as many.
	w.untrack(prerouting, "untracked", ours)
	w.pass(input, "not UDP", meta(expr.MetaKeyL4PROTO, unlike(udp)))
	w.pass(input, "not VXLAN", header(2, 2), unlike(port))
	w.pass(input, "of another network", header(12, 3), unlike(id))
	if n.VXLAN.Key != "" {
		device := make([]byte, unix.IFNAMSIZ)
		copy(device, wireguard.Name(n))
		w.drop(input, "not encrypted", meta(expr.MetaKeyIIFNAME, unlike(device)))
		w.drop(output, "not encrypted", ours, meta(expr.MetaKeyOIFNAME, unlike(device)))
	}
	// One rule lets pass what is as it should be. Those behind it only tell what the matter is.
	var fromNone []expr.Any
	for _, prefix := range ownLinks {
		fromNone = append(fromNone, unlike([]byte(prefix))...)
	}
	w.pass(input, "from a host", meta(expr.MetaKeyIIFNAME, fromNone), ip, dest, equal(local.AsSlice()), source, ofHosts)
	for _, prefix := range ownLinks {
		w.drop(input, "from a node", meta(expr.MetaKeyIIFNAME, equal([]byte(prefix))))
	}
	w.drop(input, "not to this address", ip, dest, unlike(local.AsSlice()))
	w.drop(input, "from a stranger")
	// What is masqueraded here would come to the other host from this one.
	w.drop(forward, "past this host", ours, ip, dest, ofHosts)
	// What the kernel itself sends has no socket of a user: there the rule ends, with the packet untracked.
	w.rules = append(w.rules, rule{output, "untracked, and from no user", ours, slices.Concat([]expr.Any{&expr.Notrack{}}, meta(expr.MetaKeySKUID, unlike(make([]byte, 4))), dropped)})
	return w, nil
}

// past lets what is of the network pass by the host's bridge as it is: with br_netfilter the kernel shows it to the host's own rules, which would take it for what leaves the network, and masquerade it.
func past(n spec.Network) *wall {
	w := &wall{table: &nftables.Table{Name: tableName(n), Family: nftables.TableFamilyINet}}
	w.chain(prerouting, nftables.ChainHookPrerouting, earliest)
	subnet, err := netip.ParsePrefix(n.Subnet)
	if err != nil || !subnet.Addr().Is4() {
		return w
	}
	name := make([]byte, unix.IFNAMSIZ)
	copy(name, n.Uplink.Bridge)
	for _, way := range []struct {
		why    string
		offset uint32
	}{{"from the network", 12}, {"to the network", 16}} {
		within := []expr.Any{&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: net.CIDRMask(subnet.Bits(), 32), Xor: make([]byte, 4)}}
		match := slices.Concat(meta(expr.MetaKeyIIFNAME, equal(name)), meta(expr.MetaKeyNFPROTO, equal([]byte{unix.NFPROTO_IPV4})), address(way.offset, 4), within, equal(subnet.Masked().Addr().AsSlice()))
		w.rules = append(w.rules, rule{prerouting, way.why, match, []expr.Any{&expr.Notrack{}}})
	}
	return w
}

// edge is the wall at the port of the bridge.
func edge(n spec.Network) *wall {
	w := &wall{table: &nftables.Table{Name: tableName(n), Family: nftables.TableFamilyBridge}}
	name := make([]byte, unix.IFNAMSIZ)
	copy(name, Name(n))
	in, out := meta(expr.MetaKeyIIFNAME, equal(name)), meta(expr.MetaKeyOIFNAME, equal(name))
	w.chain(input, nftables.ChainHookInput, early)
	w.chain(output, nftables.ChainHookOutput, early)
	w.drop(input, "nodes of another host", in)
	w.drop(output, "this host", out)
	gateway, err := netip.ParsePrefix(n.Gateway)
	if err != nil || !gateway.Addr().Is4() {
		return w
	}
	w.chain(forward, nftables.ChainHookForward, early)
	if n.Router { // which has the gateway's address instead of the host: each host has one, for its own nodes
		router := equal([]byte(ends.RouterPrefix))
		w.drop(forward, "its router", meta(expr.MetaKeyIIFNAME, router), out)
		w.drop(forward, "nodes of another host, to its router", in, meta(expr.MetaKeyOIFNAME, router))
	}
	protocol := []expr.Any{&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseLLHeader, Offset: 12, Len: 2}}
	w.pass(forward, "not ARP", protocol, unlike([]byte{unix.ETH_P_ARP >> 8, unix.ETH_P_ARP & 0xff}))
	sender, target, is := address(14, 4), address(24, 4), equal(gateway.Addr().AsSlice())
	w.drop(forward, "asks for the gateway", out, target, is)
	w.drop(forward, "answers as the gateway", out, sender, is)
	w.drop(forward, "gateway of another host", in, sender, is)
	return w
}

// address loads one of the header of IP or ARP, header what stands in that of UDP or behind it.
func address(offset, length uint32) []expr.Any {
	return []expr.Any{&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: length}}
}

func header(offset, length uint32) []expr.Any {
	return []expr.Any{&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: offset, Len: length}}
}

func meta(key expr.MetaKey, is []expr.Any) []expr.Any {
	return append([]expr.Any{&expr.Meta{Key: key, Register: 1}}, is...)
}

func equal(data []byte) []expr.Any {
	return []expr.Any{&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: data}}
}

func unlike(data []byte) []expr.Any {
	return []expr.Any{&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: data}}
}

// comments gives those of a wall's rules, by which it is known again: each with a digest of all that the rules follow from.
func (w *wall) comments(n spec.Network) []string {
	digest := spec.Digest([]any{n.VXLAN.ID, n.VXLAN.Local, n.VXLAN.Hosts(), n.Gateway, n.VXLAN.Key != ""})[:8]
	if n.Uplink.Bridge != "" {
		digest = spec.Digest([]any{n.Uplink, n.Subnet, n.Gateway})[:8]
	}
	var all []string
	for _, c := range w.chains {
		for _, r := range w.rules {
			if r.chain == c.Name {
				all = append(all, fmt.Sprintf("%s: %s %s (%s)", n.Name, r.chain, r.why, digest))
			}
		}
	}
	return all
}

// wallsOf gives the walls of a network: what is on a wire of others has none between hosts.
func wallsOf(n spec.Network) ([]*wall, error) {
	switch {
	case n.Uplink.Bridge != "":
		return []*wall{past(n), edge(n)}, nil
	case n.Uplink != (spec.Uplink{}):
		return []*wall{edge(n)}, nil
	}
	between, err := underlay(n)
	return []*wall{between, edge(n)}, err
}

// buildWalls replaces both walls of a network, in one transaction.
func buildWalls(n spec.Network) error {
	all, err := wallsOf(n)
	if err != nil {
		return err
	}
	c, err := nftables.New()
	if err != nil {
		return unusable(err)
	}
	for _, family := range families { // it may have been joined in another way before
		t := &nftables.Table{Name: tableName(n), Family: family}
		c.AddTable(t) // so that there is one to delete
		c.DelTable(t)
	}
	for _, w := range all {
		c.AddTable(w.table)
		if w.hosts != nil {
			if err := c.AddSet(w.hosts, nil); err != nil {
				return err
			}
			for chunk := range slices.Chunk(w.has, 256) {
				if err := c.SetAddElements(w.hosts, chunk); err != nil {
					return err
				}
			}
		}
		texts := w.comments(n)
		for _, chain := range w.chains {
			c.AddChain(chain)
			for _, r := range w.rules {
				if r.chain != chain.Name {
					continue
				}
				c.AddRule(&nftables.Rule{Table: w.table, Chain: chain, Exprs: r.exprs(w), UserData: userdata.AppendString(nil, userdata.TypeComment, texts[0])})
				texts = texts[1:]
			}
		}
	}
	if err := c.Flush(); err != nil {
		return unusable(err)
	}
	return nil
}

// exprs gives the rule in the instructions of the kernel's nf_tables.
func (r rule) exprs(w *wall) []expr.Any {
	all := slices.Clone(r.match)
	for i, e := range all { // a set gets its number when it is added
		if l, ok := e.(*expr.Lookup); ok {
			all[i] = &expr.Lookup{SourceRegister: l.SourceRegister, SetName: w.hosts.Name, SetID: w.hosts.ID}
		}
	}
	return append(all, r.then...)
}

// removeWalls takes both walls of a network away.
func removeWalls(n spec.Network) error {
	c, err := nftables.New()
	if err != nil {
		return unusable(err)
	}
	for _, family := range families {
		t := &nftables.Table{Name: tableName(n), Family: family}
		c.AddTable(t) // so that there is one to delete
		c.DelTable(t)
	}
	switch err := c.Flush(); {
	case err == nil, errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EAFNOSUPPORT): // where nftables cannot be used there are none
		return nil
	default:
		return unusable(err)
	}
}

var families = []nftables.TableFamily{nftables.TableFamilyINet, nftables.TableFamilyBridge}

// walls gives the comments of the rules of all walls that are there, by the names of the tables.
func walls() (map[string][]string, error) {
	c, err := nftables.New()
	if err != nil {
		return nil, unusable(err)
	}
	all := map[string][]string{}
	for _, family := range families {
		tables, err := c.ListTablesOfFamily(family)
		if err != nil {
			continue // this kernel has none
		}
		if !slices.ContainsFunc(tables, func(t *nftables.Table) bool { return strings.HasPrefix(t.Name, TablePrefix) }) {
			continue
		}
		chains, err := c.ListChainsOfTableFamily(family)
		if err != nil {
			return nil, unusable(err)
		}
		for _, t := range tables {
			if strings.HasPrefix(t.Name, TablePrefix) {
				all[t.Name] = append(all[t.Name], familyName[family])
			}
		}
		for _, chain := range chains {
			if !strings.HasPrefix(chain.Table.Name, TablePrefix) || chain.Hooknum == nil {
				continue
			}
			rules, err := c.GetRules(chain.Table, chain)
			if err != nil {
				continue // it went while we looked
			}
			for _, r := range rules {
				text, _ := userdata.GetString(r.UserData, userdata.TypeComment)
				all[chain.Table.Name] = append(all[chain.Table.Name], text)
			}
		}
	}
	return all, nil
}

// familyName stands before the comments of a table's rules.
var familyName = map[nftables.TableFamily]string{nftables.TableFamilyINet: "inet", nftables.TableFamilyBridge: "bridge"}

// stand reports whether the walls of a network are as they were built.
func (s *Seen) stand(n spec.Network) bool {
	all, err := wallsOf(n)
	if err != nil {
		return false
	}
	var shall []string
	for _, w := range all {
		shall = append(append(shall, familyName[w.table.Family]), w.comments(n)...)
	}
	has := slices.Clone(s.walls[tableName(n)])
	slices.Sort(shall)
	slices.Sort(has)
	return slices.Equal(shall, has)
}

func unusable(err error) error {
	return problem.New(problem.Unable, "nftables cannot keep hosts apart").Because(err).Try("modprobe nf_tables nf_tables_bridge")
}
