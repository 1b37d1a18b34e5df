package facts

import (
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"orrery/test/need"
)

// TestNetfilter: only chains for packets of the host itself count, not those for forwarded or
// bridged packets.
func TestNetfilter(t *testing.T) {
	if !need.Alone(t, "--net") {
		return
	}
	expect(t, "an empty namespace", collect(t, Options{}).Netfilter, Netfilter{})
	c, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	pass := []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}}
	table := func(family nftables.TableFamily, name string, kind nftables.ChainType, hook *nftables.ChainHook) {
		of := c.AddTable(&nftables.Table{Family: family, Name: name})
		chain := c.AddChain(&nftables.Chain{Name: "base", Table: of, Type: kind, Hooknum: hook,
			Priority: nftables.ChainPriorityFilter})
		own := c.AddChain(&nftables.Chain{Name: "own", Table: of})
		c.AddRule(&nftables.Rule{Table: of, Chain: chain, Exprs: pass})
		c.AddRule(&nftables.Rule{Table: of, Chain: own, Exprs: pass})
	}
	table(nftables.TableFamilyINet, "filter", nftables.ChainTypeFilter, nftables.ChainHookInput)
	table(nftables.TableFamilyIPv4, "mangle", nftables.ChainTypeFilter, nftables.ChainHookOutput)
	table(nftables.TableFamilyINet, "between", nftables.ChainTypeFilter, nftables.ChainHookForward)
	if err := c.Flush(); err != nil {
		t.Skip("this kernel has no nftables: ", err)
	}
	got := collect(t, Options{}).Netfilter
	got.Tracking = false // the kernel may count those of all namespaces
	expect(t, "two tables", got, Netfilter{Tables: []string{"inet filter", "ip mangle"}, Chains: 2, Rules: 4})
}

// TestNetfilterFiles: the facts that are only in files.
func TestNetfilterFiles(t *testing.T) {
	root := files(t, map[string]string{
		"proc/stat": "", "proc/net/ip_tables_names": "nat\nfilter\n", "proc/net/ip6_tables_names": "",
		"proc/sys/net/netfilter/nf_conntrack_count": "7\n",
	})
	expect(t, "iptables and conntrack", collect(t, Options{Root: root}).Netfilter,
		Netfilter{Legacy: []string{"ip nat", "ip filter"}, Tracking: true})
}
