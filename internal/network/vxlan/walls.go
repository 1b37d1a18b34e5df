package vxlan

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"golang.org/x/sys/unix"

	"orrery/internal/network/ends"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// TablePrefix begins the names of the tables of networks that are on several hosts. The rest is the
// name of their device.
const TablePrefix = "orrery."

func tableOf(n spec.Network) *nftables.Table {
	return &nftables.Table{Name: tableName(n), Family: nftables.TableFamilyBridge}
}

func tableName(n spec.Network) string { return TablePrefix + Name(n) }

// A rule is a rule of the wall at the port of the bridge. A frame that does not match goes on to
// the next rule, and is accepted after the last one.
type rule struct {
	chain string
	why   string
	match []expr.Any
	then  expr.VerdictKind
}

// The chains, named after the hooks at which they see frames.
const (
	input   = "input"
	forward = "forward"
	output  = "output"
)

var hooks = map[string]*nftables.ChainHook{input: nftables.ChainHookInput, forward: nftables.ChainHookForward,
	output: nftables.ChainHookOutput}

// filterRules returns the rules at the port of the bridge, with their chains. For a VXLAN, the rules that
// keep the gateway's ARP on its host match the packets between hosts instead, which must meet rules
// in any case. A chain here would see all traffic between nodes, and would cost each frame as much
// as any other chain.
func filterRules(n spec.Network) []rule {
	device := make([]byte, unix.IFNAMSIZ)
	copy(device, Name(n))
	in, out := meta(expr.MetaKeyIIFNAME, equal(device)), meta(expr.MetaKeyOIFNAME, equal(device))
	drop := func(chain, why string, match ...[]expr.Any) rule {
		return rule{chain, why, slices.Concat(match...), expr.VerdictDrop}
	}
	all := []rule{drop(input, "nodes of another host", in), drop(output, "this host", out)}
	all = append(all, uplinkRules(n)...)
	if n.Uplink != (spec.Uplink{}) && !n.Spoof {
		// A switch may close its port for frames that are addressed to bridges, whatever they are.
		// Orrery's own bridges forward such frames.
		all = append(all, drop(forward, "for bridges alone", out, toBridges))
	}
	gateway, err := netip.ParsePrefix(n.Gateway)
	if err != nil || !gateway.Addr().Is4() || n.VXLAN != (spec.VXLAN{}) && !n.Router {
		return all
	}
	if n.Router { // it has the gateway's address instead of the host, and each host has one for its nodes
		router := equal([]byte(ends.RouterPrefix))
		all = append(all, drop(forward, "its router", meta(expr.MetaKeyIIFNAME, router), out),
			drop(forward, "nodes of another host, to its router", in, meta(expr.MetaKeyOIFNAME, router)))
	}
	protocol := []expr.Any{&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseLLHeader, Offset: 12, Len: 2}}
	sender, target, gatewayMatch := address(14), address(24), equal(gateway.Addr().AsSlice())
	return append(all, rule{forward, "not ARP",
		slices.Concat(protocol, notEqual([]byte{unix.ETH_P_ARP >> 8, unix.ETH_P_ARP & 0xff})), expr.VerdictAccept},
		drop(forward, "asks for the gateway", out, target, gatewayMatch),
		drop(forward, "answers as the gateway", out, sender, gatewayMatch),
		drop(forward, "gateway of another host", in, sender, gatewayMatch))
}

// uplinkRules are for packets to the host itself from the port of a network on a bridge of the host,
// where the host may have addresses. The bridge does not tell the host by which port a packet came.
// So IPv4 packets get a mark, which the site's table checks (network.wireRules).
func uplinkRules(n spec.Network) []rule {
	if n.Uplink.Bridge == "" {
		return nil
	}
	port := make([]byte, unix.IFNAMSIZ)
	copy(port, uplinkPort(n))
	in := meta(expr.MetaKeyIIFNAME, equal(port))
	of := func(protocol uint16) []expr.Any {
		return append([]expr.Any{&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseLLHeader, Offset: 12, Len: 2}},
			equal(binaryutil.BigEndian.PutUint16(protocol))...)
	}
	marked := []expr.Any{
		&expr.Immediate{Register: 1, Data: binaryutil.NativeEndian.PutUint32(Mark(n))},
		&expr.Meta{Key: expr.MetaKeyMARK, SourceRegister: true, Register: 1},
	}
	return []rule{
		{input, "ARP to this host", slices.Concat(in, of(unix.ETH_P_ARP)), expr.VerdictAccept},
		{input, "IPv4 to this host", slices.Concat(in, of(unix.ETH_P_IP), marked), expr.VerdictAccept},
		{input, "others to this host", in, expr.VerdictDrop},
	}
}

// Mark returns the mark of packets that nodes of a network send to the host over the host's own
// bridge. It uses the highest byte, which the marks of other programs (Kubernetes, Tailscale,
// WireGuard) leave free. If two networks on one bridge have the same mark, the ports that one of
// them opens may stay closed.
func Mark(n spec.Network) uint32 {
	d := sha256.Sum256([]byte("mark\x00" + n.Site + "\x00" + n.Name))
	return (uint32(d[0])%255 + 1) << 24
}

// toBridges matches frames to 01:80:c2:00:00:00 and the following addresses, which no bridge should
// forward (IEEE 802.1D).
var toBridges = append([]expr.Any{&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseLLHeader, Offset: 0, Len: 5}},
	equal([]byte{0x01, 0x80, 0xc2, 0, 0})...)

// address loads an address of an ARP packet.
func address(offset uint32) []expr.Any {
	return []expr.Any{&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: 4}}
}

func meta(key expr.MetaKey, match []expr.Any) []expr.Any {
	return append([]expr.Any{&expr.Meta{Key: key, Register: 1}}, match...)
}

func equal(data []byte) []expr.Any {
	return []expr.Any{&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: data}}
}

func notEqual(data []byte) []expr.Any {
	return []expr.Any{&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: data}}
}

// comment returns the comment that the kernel stores with a rule. It identifies the rule, with a
// digest of everything that the rules depend on.
func (r rule) comment(n spec.Network) string {
	digest := spec.Digest([]any{n.VXLAN.ID, n.Uplink, n.Gateway, n.Router, n.Spoof})[:8]
	return fmt.Sprintf("%s: %s %s (%s)", n.Name, r.chain, r.why, digest)
}

// installFilter replaces the wall of a network, in one transaction.
func installFilter(n spec.Network) error {
	c, err := nftables.New()
	if err != nil {
		return nftablesError(err)
	}
	deleteTables(c, n)
	t := c.AddTable(tableOf(n))
	// The priority is before Orrery's other rules, which then need not see packets dropped here.
	early, open := nftables.ChainPriority(-20), nftables.ChainPolicyAccept
	chains := map[string]*nftables.Chain{}
	for _, r := range filterRules(n) {
		if chains[r.chain] == nil {
			chains[r.chain] = c.AddChain(&nftables.Chain{Name: r.chain, Table: t, Type: nftables.ChainTypeFilter,
				Hooknum: hooks[r.chain], Priority: &early, Policy: &open})
		}
		exprs := slices.Clone(r.match)
		if r.then == expr.VerdictDrop {
			exprs = append(exprs, &expr.Counter{})
		}
		c.AddRule(&nftables.Rule{
			Table: t, Chain: chains[r.chain], Exprs: append(exprs, &expr.Verdict{Kind: r.then}),
			UserData: userdata.AppendString(nil, userdata.TypeComment, r.comment(n)),
		})
	}
	if err := c.Flush(); err != nil {
		return nftablesError(err)
	}
	return nil
}

// deleteTables deletes the tables of a network. Former versions also had a table that is now part of the
// site's.
func deleteTables(c *nftables.Conn, n spec.Network) {
	for _, family := range []nftables.TableFamily{nftables.TableFamilyBridge, nftables.TableFamilyINet} {
		t := &nftables.Table{Name: tableName(n), Family: family}
		c.AddTable(t) // so that there is one to delete
		c.DelTable(t)
	}
}

// removeFilter removes the wall of a network.
func removeFilter(n spec.Network) error {
	c, err := nftables.New()
	if err != nil {
		return nftablesError(err)
	}
	deleteTables(c, n)
	switch err := c.Flush(); {
	case err == nil, errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EAFNOSUPPORT):
		// If nftables cannot be used, there is no wall.
		return nil
	default:
		return nftablesError(err)
	}
}

// readFilters returns the comments of the rules of all existing walls, by the names of the tables. Tables
// of former versions are included, and count as a difference.
func readFilters() (map[string][]string, error) {
	c, err := nftables.New()
	if err != nil {
		return nil, nftablesError(err)
	}
	all := map[string][]string{}
	for _, family := range []nftables.TableFamily{nftables.TableFamilyBridge, nftables.TableFamilyINet} {
		tables, err := c.ListTablesOfFamily(family)
		if err != nil {
			continue // the kernel does not have this family
		}
		tables = slices.DeleteFunc(tables, func(t *nftables.Table) bool { return !strings.HasPrefix(t.Name, TablePrefix) })
		if len(tables) == 0 {
			continue
		}
		for _, t := range tables {
			all[t.Name] = append(all[t.Name], familyName[family])
		}
		chains, err := c.ListChainsOfTableFamily(family)
		if err != nil {
			return nil, nftablesError(err)
		}
		for _, chain := range chains {
			if !strings.HasPrefix(chain.Table.Name, TablePrefix) || chain.Hooknum == nil {
				continue
			}
			rules, err := c.GetRules(chain.Table, chain)
			if err != nil {
				continue // the chain was removed in between
			}
			for _, r := range rules {
				text, _ := userdata.GetString(r.UserData, userdata.TypeComment)
				all[chain.Table.Name] = append(all[chain.Table.Name], text)
			}
		}
	}
	return all, nil
}

// familyName is the first element of the comments of a table, before those of its rules.
var familyName = map[nftables.TableFamily]string{nftables.TableFamilyINet: "inet", nftables.TableFamilyBridge: "bridge"}

// hasFilter reports whether the wall of a network is as it was built.
func (s *State) hasFilter(n spec.Network) bool {
	shall := []string{familyName[nftables.TableFamilyBridge]}
	for _, r := range filterRules(n) {
		shall = append(shall, r.comment(n))
	}
	existing := slices.Clone(s.filters[tableName(n)])
	slices.Sort(shall)
	slices.Sort(existing)
	return slices.Equal(shall, existing)
}

func nftablesError(err error) error {
	return problem.New(problem.Unable, "nftables cannot filter traffic between hosts").Because(err).
		Try("modprobe nf_tables nf_tables_bridge")
}
