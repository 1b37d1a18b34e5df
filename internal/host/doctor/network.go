package doctor

import (
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"orrery/internal/host/shape"
	"orrery/internal/site/traffic"
)

// network checks whether this machine can have networks, and what prevents it.
func (m machine) network() Facts {
	facts := Facts{
		trialFact("bridge", Required, inNewNetwork(tryBridge),
			"run orrery as root on a kernel with bridges: modprobe bridge"),
		trialFact("veth", Required, inNewNetwork(tryVeth), "run orrery as root on a kernel with veth: modprobe veth"),
		trialFact("nftables", Required, inNewNetwork(tryTable),
			"run orrery as root on a kernel with nf_tables: modprobe nf_tables nft_ct"),
		trialFact("bounds", Required, inNewNetwork(tryConnLimit),
			"connections of nodes cannot be limited: modprobe nft_connlimit nft_fib_inet"),
		trialFact("port guards", Required, inNewNetwork(tryAntiSpoof),
			"nodes could send from other nodes' addresses: modprobe nf_tables_bridge; or set spoof = true for each network"),
		trialFact("masquerading", Recommended, inNewNetwork(tryMasquerade),
			"networks with nat do not work: modprobe nft_chain_nat nft_masq"),
		trialFact("published ports", Recommended, inNewNetwork(tryPublish),
			"publish does not work: modprobe nft_chain_nat nft_nat nft_fib_inet"),
		trialFact("vxlan", Recommended, inNewNetwork(tryVXLAN), "networks over several hosts do not work: modprobe vxlan"),
		trialFact("wireguard", Recommended, inNewNetwork(tryWireGuard),
			"networks with encrypt do not work: modprobe wireguard (Debian's and Ubuntu's kernels have it)"),
		trialFact("traffic limits", Recommended, inNewNetwork(func() error {
			return shape.Try(traffic.Limits{Rate: traffic.MinRate})
		}), "rate does not work: modprobe sch_htb ifb cls_u32 act_mirred"),
		trialFact("traffic delays", Info, inNewNetwork(func() error {
			return shape.Try(traffic.Limits{Latency: traffic.MaxLatency})
		}), "latency, jitter and loss do not work: modprobe sch_netem"),
		m.forwarding(),
	}
	return append(facts, m.firewall()...)
}

func inNewNetwork(try func() error) error { return inNamespace(unix.CLONE_NEWNET, try) }

func tryBridge() error {
	return netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "trial"}})
}

func tryVeth() error {
	return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "trial"}, PeerName: "peer"})
}

func tryVXLAN() error {
	return netlink.LinkAdd(&netlink.Vxlan{LinkAttrs: netlink.LinkAttrs{Name: "trial"}, VxlanId: 1, Port: 4789})
}

func tryWireGuard() error {
	return netlink.LinkAdd(&netlink.Wireguard{LinkAttrs: netlink.LinkAttrs{Name: "trial"}})
}

func tryTable() error {
	return tryRule(nftables.ChainTypeFilter, nftables.ChainHookForward, nftables.ChainPriorityFilter,
		&expr.Ct{Register: 1, Key: expr.CtKeySTATE}, &expr.Verdict{Kind: expr.VerdictAccept})
}

// tryConnLimit creates a rule that counts connections, and one with a reverse path lookup.
func tryConnLimit() error {
	return tryRule(nftables.ChainTypeFilter, nftables.ChainHookForward, nftables.ChainPriorityFilter,
		&expr.Connlimit{Count: 1, Flags: expr.NFT_CONNLIMIT_F_INV},
		&expr.Fib{Register: 1, FlagSADDR: true, FlagIIF: true, ResultOIF: true},
		&expr.Verdict{Kind: expr.VerdictAccept})
}

// tryAntiSpoof creates a bridge rule that looks up the interface and the MAC address of a packet.
func tryAntiSpoof() error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	t := c.AddTable(&nftables.Table{Name: "trial", Family: nftables.TableFamilyBridge})
	chain := c.AddChain(&nftables.Chain{
		Name: "trial", Table: t, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookPrerouting,
		Priority: nftables.ChainPriorityFilter,
	})
	set := &nftables.Set{Table: t, Name: "trial", Concatenation: true,
		KeyType: nftables.MustConcatSetType(nftables.TypeIFName, nftables.TypeEtherAddr)}
	if err := c.AddSet(set, nil); err != nil {
		return err
	}
	c.AddRule(&nftables.Rule{Table: t, Chain: chain, Exprs: []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1},
		&expr.Payload{DestRegister: 2, Base: expr.PayloadBaseLLHeader, Offset: 6, Len: 6},
		&expr.Lookup{SourceRegister: 1, SetName: set.Name, Invert: true}, &expr.Verdict{Kind: expr.VerdictDrop},
	}})
	return c.Flush()
}

func tryMasquerade() error {
	return tryRule(nftables.ChainTypeNAT, nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource, &expr.Masq{})
}

// tryPublish creates a rule that translates the destination of connections to the host.
func tryPublish() error {
	return tryRule(nftables.ChainTypeNAT, nftables.ChainHookPrerouting, nftables.ChainPriorityNATDest,
		&expr.Fib{Register: 1, FlagDADDR: true, ResultADDRTYPE: true},
		&expr.Immediate{Register: 1, Data: []byte{10, 0, 0, 1}},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: 1})
}

func tryRule(kind nftables.ChainType, hook *nftables.ChainHook, priority *nftables.ChainPriority,
	does ...expr.Any) error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	t := c.AddTable(&nftables.Table{Name: "trial", Family: nftables.TableFamilyINet})
	chain := c.AddChain(&nftables.Chain{Name: "trial", Table: t, Type: kind, Hooknum: hook, Priority: priority})
	c.AddRule(&nftables.Rule{Table: t, Chain: chain, Exprs: does})
	return c.Flush()
}

func (m machine) forwarding() Fact {
	const name = "forwarding"
	switch value := m.read("proc/sys/net/ipv4/ip_forward"); value {
	case "1":
		return Fact{name, true, Info, "on", ""}
	case "0":
		return Fact{name, true, Info, "off; turned on while a network with nat or a published port is up", ""}
	default:
		return Fact{name, false, Recommended, fmt.Sprintf("net.ipv4.ip_forward is %q", value),
			"networks with nat and published ports do not work"}
	}
}
