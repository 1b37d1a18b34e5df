package facts

import (
	"slices"
	"strings"

	"github.com/google/nftables"
)

// Netfilter is what packets of the host itself pass, including those of its loopback. Packets of a
// node on a bridge do not pass it.
type Netfilter struct {
	// tables of nftables with chains for such packets, such as "inet filter"
	Tables   []string `json:"tables,omitempty"`
	Chains   int      `json:"chains,omitempty"` // number of such chains
	Rules    int      `json:"rules,omitempty"`  // number of rules in the tables
	Legacy   []string `json:"legacy,omitempty"` // tables of legacy iptables
	Tracking bool     `json:"tracking"`         // connections are tracked
}

// Passed reports whether packets pass anything.
func (n Netfilter) Passed() bool { return n.Chains > 0 || len(n.Legacy) > 0 || n.Tracking }

func (h host) netfilter(f *Facts) {
	n := &f.Netfilter
	n.Tracking = h.number("proc/sys/net/netfilter/nf_conntrack_count") > 0
	for _, file := range []string{"ip_tables_names", "ip6_tables_names"} {
		for name := range strings.FieldsSeq(h.read("proc/net/" + file)) {
			n.Legacy = append(n.Legacy, strings.TrimSuffix(file, "_tables_names")+" "+name)
		}
	}
	if h.live {
		n.tables()
	}
}

// tables lists the tables of nftables from the kernel. A kernel without nftables has none.
func (n *Netfilter) tables() {
	families := map[nftables.TableFamily]string{
		nftables.TableFamilyIPv4: "ip", nftables.TableFamilyIPv6: "ip6", nftables.TableFamilyINet: "inet",
	}
	c, err := nftables.New()
	if err != nil {
		return
	}
	chains, err := c.ListChains()
	if err != nil {
		return
	}
	for _, chain := range chains {
		family, ok := families[chain.Table.Family]
		if !ok || chain.Hooknum == nil || *chain.Hooknum == *nftables.ChainHookForward {
			continue
		}
		n.Chains++
		if name := family + " " + chain.Table.Name; !slices.Contains(n.Tables, name) {
			n.Tables = append(n.Tables, name)
		}
	}
	for _, chain := range chains {
		if !slices.Contains(n.Tables, families[chain.Table.Family]+" "+chain.Table.Name) {
			continue
		}
		if rules, err := c.GetRules(chain.Table, chain); err == nil {
			n.Rules += len(rules)
		}
	}
	slices.Sort(n.Tables)
}
