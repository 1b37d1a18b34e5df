package network

import (
	"errors"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/nftables/userdata"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"orrery/internal/network/ends"
	"orrery/internal/network/kind"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// Ports of the host lead to nodes by translation of the destination, in the table of the site. The
// table is also the only record of them: each rule that translates carries the spec.Published that
// it belongs to, beside its comment. So the table can be rewritten when the ports of only one
// network are known, and ports that another program removes show as missing.
//
// The source address stays, so the node sees who connects. Answers come back through the host, since
// it is the gateway of the node. Nodes of any site cannot use the ports: they have their networks.
// The host can, at its own addresses, but not at those of its loopback. A packet from 127.0.0.1 to a
// node would need net.ipv4.conf.*.route_localnet, with which nodes could send to 127.0.0.1.

// publishRules translate the destination of new connections to ports of the host.
func publishRules(n spec.Network) []rule {
	var all []rule
	for _, p := range n.AllPublished() { // check has verified that they can be parsed
		to := rule{network: n.Name, chain: publish, why: "publish", in: foreign, local: true, except: loopbackIPv4,
			verdict: translate, record: p.String()}
		if p.Address.IsValid() {
			to.dest = netip.PrefixFrom(p.Address, 32)
		}
		for _, to := range translations(to, p) {
			local := to
			local.chain, local.in = publishLocal, linkMatch{}
			all = append(all, to, local)
		}
	}
	return all
}

// translations returns a rule for all ports or, if their numbers differ, for each of them.
func translations(to rule, p spec.Published) []rule {
	if !p.Translates() {
		to.port, to.to = p.Ports, netip.AddrPortFrom(p.To, 0)
		return []rule{to}
	}
	var all []rule
	for i := range p.Ports.Last - p.Ports.First + 1 {
		port := p.Ports.First + i
		to.port, to.to = site.PortRange{Proto: p.Ports.Proto, First: port, Last: port}, netip.AddrPortFrom(p.To, p.NodePort+i)
		all = append(all, to)
	}
	return all
}

// publishedForwardRules let connections to published ports in, and their answers out. Only what was
// translated gets in: a machine that routes packets for the node to this host does not reach it.
func publishedForwardRules(n spec.Network) []rule {
	var all []rule
	for _, p := range n.AllPublished() { // check has verified that they can be parsed
		all = append(all, rule{network: n.Name, chain: forward, why: "published", in: foreign, out: nodeLink(n),
			dest: netip.PrefixFrom(p.To, 32), port: site.PortRange{Proto: p.Ports.Proto, First: p.NodePort, Last: p.Last()},
			translated: true, verdict: accept})
	}
	if len(all) == 0 {
		return nil
	}
	return append(all,
		rule{network: n.Name, chain: forward, why: "published, errors", in: foreign, out: nodeLink(n), replies: true,
			translated: true, verdict: accept},
		rule{network: n.Name, chain: forward, why: "published, answers", in: nodeLink(n), out: foreign, source: subnet(n),
			replies: true, translated: true, verdict: accept})
}

// recordType is the type of the record in the user data of a rule. nft(8) ignores types that it does
// not know (NFTNL_UDATA_RULE_*, libnftnl/udata.h).
const recordType = userdata.Type(0x70)

// userData returns what the kernel stores with the rule.
func (r rule) userData() []byte {
	data := userdata.AppendString(nil, userdata.TypeComment, r.comment())
	if r.record != "" {
		data = userdata.AppendString(data, recordType, r.record)
	}
	return data
}

// addRecord adds the ports that a rule with a comment publishes to those of its network.
func addRecord(ports map[string][]spec.Published, comment string, data []byte) {
	record, ok := userdata.GetString(data, recordType)
	network, _, named := strings.Cut(comment, ": ")
	if !ok || !named {
		return
	}
	if all, err := spec.ParsePublished(record); err == nil && len(all) > 0 {
		ports[network] = append(ports[network], all...)
	}
}

// addPublished adds to networks of other sites the ports that they publish.
func addPublished(networks []spec.Network) error {
	tables := map[string]map[string]string{}
	for i := range networks {
		n := &networks[i]
		if !kind.Of(n.Kind).HasNodes() {
			continue
		}
		if tables[n.Site] == nil {
			_, ports, err := readTable(siteTable(n.Site))
			if err != nil {
				return err
			}
			tables[n.Site] = ports
		}
		n.Publish = tables[n.Site][n.Name]
	}
	return nil
}

// checkPublished returns an error if ports cannot lead to a network, before anything is changed.
func checkPublished(n spec.Network, subnet netip.Prefix) error {
	all, err := spec.ParsePublished(n.Publish)
	if err != nil {
		return problem.New(problem.Unable, "network %s: the ports that it publishes cannot be read", n.Name).Because(err)
	}
	for _, p := range all {
		if len(p.Node) > 63 || n.HostAddress() == "" || !subnet.Contains(p.To) || netip.PrefixFrom(p.To, 32) == gateway(n) {
			return problem.New(problem.Unable, "network %s: port %s cannot lead to %s", n.Name, p.Ports, p.To)
		}
	}
	return nil
}

// forgetFlows removes the kernel's state of UDP flows to ports of the host or to active services that a change
// of a network has redirected or closed.
// The kernel chooses the destination for the first packet of a flow, so a client that keeps sending
// would never reach the new one. A TCP client connects again.
func forgetFlows(before, after spec.Network) error {
	old, current := before.AllPublished(), after.AllPublished()
	stale := staleFlows{at: map[string]bool{}, ports: changedAnswers(before, after)}
	for _, p := range slices.Concat(old, current) {
		if p.Ports.Proto == "udp" && slices.Contains(old, p) != slices.Contains(current, p) {
			stale.ports = append(stale.ports, p.Ports)
		}
	}
	if len(stale.ports) == 0 {
		return nil
	}
	failed := func(err error) error {
		return problem.New(problem.Failed, "forget the flows of published ports").Because(err)
	}
	addresses, err := ends.ListConsistent(func() ([]netlink.Addr, error) {
		return netlink.AddrList(nil, netlink.FAMILY_V4)
	})
	if err != nil {
		return failed(err)
	}
	for _, a := range addresses {
		stale.at[a.IP.String()] = true
	}
	_, err = netlink.ConntrackDeleteFilters(netlink.ConntrackTable, unix.AF_INET, stale)
	if err != nil && !errors.Is(err, unix.ENOENT) { // a flow may end while they are listed
		return failed(err)
	}
	return nil
}

// staleFlows matches flows to some UDP ports of the host.
type staleFlows struct {
	ports []site.PortRange
	at    map[string]bool // addresses of the host
}

// MatchConntrackFlow reports whether a flow began with a packet to one of the ports.
func (s staleFlows) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	return flow.Forward.Protocol == unix.IPPROTO_UDP && s.at[flow.Forward.DstIP.String()] &&
		slices.ContainsFunc(s.ports, func(r site.PortRange) bool {
			return r.First <= flow.Forward.DstPort && flow.Forward.DstPort <= r.Last
		})
}
