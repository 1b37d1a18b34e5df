package doctor

import (
	"bytes"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
)

// firewall looks for chains that drop packets of nodes although Orrery's own rules accept them. A
// packet must be accepted by every table that sees it.
func (m machine) firewall() Facts {
	closed, err := droppingChains()
	if err != nil { // another fact reports that nftables does not work
		return nil
	}
	facts := Facts{firewallFact(closed)}
	if tables := strings.Fields(m.read("proc/net/ip_tables_names")); len(tables) > 0 {
		facts = append(facts, Fact{"iptables-legacy", true, Info,
			"tables " + strings.Join(tables, ", ") + ": packets that they drop do not reach nodes", ""})
	}
	// With br_netfilter, a closed chain even separates the nodes of one network.
	if m.read("proc/sys/net/bridge/bridge-nf-call-iptables") == "1" {
		f := Fact{"br_netfilter", len(closed) == 0, Recommended,
			"firewalls also filter packets between the nodes of a network", ""}
		if !f.OK {
			f.Fix = "sysctl -w net.bridge.bridge-nf-call-iptables=0, or accept the bridges orb* as above"
		}
		facts = append(facts, f)
	}
	return facts
}

// droppingChains returns the chains of other programs that drop unknown packets.
func droppingChains() ([]*nftables.Chain, error) {
	c, err := nftables.New()
	if err != nil {
		return nil, err
	}
	all, err := c.ListChains()
	if err != nil {
		return nil, err
	}
	var closed []*nftables.Chain
	for _, chain := range all {
		if !dropsPackets(chain) {
			continue
		}
		if known, err := mentionsBridges(c, all, chain.Table); err == nil && !known {
			closed = append(closed, chain)
		}
	}
	return closed, nil
}

// mentionsBridges reports whether a table has a rule about Orrery's bridges, whose names begin with
// "orb".
func mentionsBridges(c *nftables.Conn, all []*nftables.Chain, t *nftables.Table) (bool, error) {
	for _, chain := range all {
		if chain.Table.Name != t.Name || chain.Table.Family != t.Family {
			continue
		}
		rules, err := c.GetRules(t, chain)
		if err != nil {
			return false, err
		}
		for _, r := range rules {
			for _, e := range r.Exprs {
				if compare, ok := e.(*expr.Cmp); ok && bytes.HasPrefix(compare.Data, []byte("orb")) {
					return true, nil
				}
			}
		}
	}
	return false, nil
}

func dropsPackets(c *nftables.Chain) bool {
	if c.Hooknum == nil || c.Policy == nil || *c.Policy != nftables.ChainPolicyDrop {
		return false
	}
	switch c.Table.Family {
	case nftables.TableFamilyIPv4, nftables.TableFamilyINet, nftables.TableFamilyBridge:
	default:
		return false
	}
	return *c.Hooknum == *nftables.ChainHookForward || *c.Hooknum == *nftables.ChainHookInput
}

func firewallFact(closed []*nftables.Chain) Fact {
	const name = "firewall"
	if len(closed) == 0 {
		return Fact{name, true, Recommended, "no other program's chain drops packets by policy", ""}
	}
	var chains, fixes []string
	for _, c := range closed {
		at := strings.Join([]string{family(c.Table.Family), c.Table.Name, c.Name}, " ")
		chains = append(chains, at)
		fixes = append(fixes, `nft insert rule `+at+` iifname "orb*" accept`)
		if *c.Hooknum == *nftables.ChainHookForward {
			fixes = append(fixes, `nft insert rule `+at+` oifname "orb*" accept`)
		}
	}
	return Fact{
		name, false, Recommended, "chains that drop packets by policy: " + strings.Join(chains, ", "),
		"unless their rules accept the bridges orb*: " + strings.Join(fixes, "; "),
	}
}

// family returns a table's family as nft(8) writes it.
func family(f nftables.TableFamily) string {
	switch f {
	case nftables.TableFamilyIPv4:
		return "ip"
	case nftables.TableFamilyBridge:
		return "bridge"
	default:
		return "inet"
	}
}
