package network

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"github.com/mdlayher/netlink"

	"orrery/internal/network/vxlan"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
	"orrery/internal/text/pattern"
)

const tablePrefix = "orrery-"

// tableName returns the name of a site's table. If nft(8) could not parse the site's name, it uses
// a digest instead.
func tableName(site string) string {
	if !plainName().MatchString(site) {
		site = "digest-" + spec.DigestBytes([]byte(site))
	}
	return tablePrefix + site
}

// It is compiled on first use, so that most commands do not wait for it.
var plainName = pattern.New(`^[A-Za-z0-9._-]{1,100}$`)

func siteTable(site string) *nftables.Table {
	return &nftables.Table{Name: tableName(site), Family: nftables.TableFamilyINet}
}

// chains returns the base chains of a site's table, by name.
//
// Priorities: a packet must be accepted in every table that sees it, so the order of the filters of
// firewalld, ufw, docker and Orrery does not affect the result. Orrery's chains come a little
// before theirs (filter, 0), so packets dropped here cost them nothing and do not appear in their
// logs. For NAT, the first chain to translate a connection wins. Orrery's comes a little before
// srcnat (100), where docker and firewalld masquerade everything that leaves, so Orrery's table
// decides for its subnets. Connection tracking (-200) runs before both. A drop in another table
// still drops packets that Orrery's table accepts, and `orrery doctor` reports such tables.
func chains(t *nftables.Table) map[string]*nftables.Chain {
	open := nftables.ChainPolicyAccept // the chains see the traffic of the whole host
	chain := func(name string, kind nftables.ChainType, hook *nftables.ChainHook,
		priority nftables.ChainPriority) *nftables.Chain {
		return &nftables.Chain{Name: name, Table: t, Type: kind, Hooknum: hook, Priority: &priority, Policy: &open}
	}
	return map[string]*nftables.Chain{
		prerouting: chain(prerouting, nftables.ChainTypeFilter, nftables.ChainHookPrerouting, -300),
		output:     chain(output, nftables.ChainTypeFilter, nftables.ChainHookOutput, -300),
		forward:    chain(forward, nftables.ChainTypeFilter, nftables.ChainHookForward, -10),
		input:      chain(input, nftables.ChainTypeFilter, nftables.ChainHookInput, -10),
		// Before the other programs' chains, which come at -100 and do not know the ports of nodes.
		publish:      chain(publish, nftables.ChainTypeNAT, nftables.ChainHookPrerouting, -110),
		publishLocal: chain(publishLocal, nftables.ChainTypeNAT, nftables.ChainHookOutput, -110),
		postrouting:  chain(postrouting, nftables.ChainTypeNAT, nftables.ChainHookPostrouting, 90),
	}
}

// writeTable replaces a site's table by the table for its networks.
func writeTable(site string, networks []spec.Network) error {
	all, err := desiredRules(networks)
	if err != nil {
		return err
	}
	return replaceTable(siteTable(site), all)
}

// desiredRules returns the rules that a site's table must have in the current state of this host.
func desiredRules(networks []spec.Network) ([]rule, error) {
	all := rules(networks)
	if len(all) == 0 {
		return nil, nil
	}
	others, err := hasForeignRules()
	if err != nil || others {
		return all, err
	}
	return append(untrackedRules(), all...), nil
}

// hasForeignRules reports whether another program on this host has rules that may use connection
// tracking, even on the loopback: ufw, firewalld, docker, podman, or the host's own. Connections
// are then tracked for these rules anyway.
func hasForeignRules() (bool, error) {
	if legacy, err := os.ReadFile("/proc/net/ip_tables_names"); err == nil && len(legacy) > 0 {
		return true, nil
	}
	c, err := nftables.New(nftables.AsLasting()) // one socket for all requests
	if err != nil {
		return false, nftablesError(err)
	}
	defer func() { _ = c.CloseLasting() }()
	for _, family := range []nftables.TableFamily{nftables.TableFamilyINet, nftables.TableFamilyIPv4,
		nftables.TableFamilyIPv6} {
		found, err := c.ListChainsOfTableFamily(family)
		if err != nil {
			return false, nftablesError(err)
		}
		for _, chain := range found {
			if chain.Hooknum == nil || strings.HasPrefix(chain.Table.Name, tablePrefix) ||
				strings.HasPrefix(chain.Table.Name, vxlan.TablePrefix) {
				continue
			}
			if chain.Type == nftables.ChainTypeNAT {
				return true, nil
			}
			if rules, err := c.GetRules(chain.Table, chain); err != nil || len(rules) > 0 {
				return true, nil //nolint:nilerr // it went while we looked: leave well alone
			}
		}
	}
	return false, nil
}

// replaceTable replaces a table, in one transaction, by one with the given rules, or removes it if
// there are none. Existing connections continue, since the kernel stores their translations apart
// from the rules.
func replaceTable(t *nftables.Table, all []rule) error {
	// The kernel takes all rules in one message, and its answers, one for each rule, are buffered until
	// the transaction is over.
	room := nftables.WithSockOptions(func(c *netlink.Conn) error {
		if err := c.SetWriteBuffer(1<<18 + 2048*len(all)); err != nil {
			return err
		}
		return c.SetReadBuffer(1<<18 + 4096*len(all))
	})
	c, err := nftables.New(room)
	if err != nil {
		return nftablesError(err)
	}
	c.AddTable(t) // so that there is one to delete
	c.DelTable(t)
	if len(all) > 0 {
		c.AddTable(t)
		base := chains(t)
		for _, name := range chainNames {
			if slices.ContainsFunc(all, func(r rule) bool { return r.chain == name }) {
				c.AddChain(base[name])
			}
		}
		var unset error
		sets := map[string]*expr.Lookup{}
		set := func(hosts []netip.Addr) expr.Any {
			key := fmt.Sprint(hosts)
			if sets[key] == nil {
				lookup, err := addHosts(c, t, hosts)
				sets[key], unset = lookup, errors.Join(unset, err)
			}
			return sets[key]
		}
		for _, r := range all {
			c.AddRule(&nftables.Rule{
				Table: t, Chain: base[r.chain], Exprs: r.exprs(set), UserData: r.userData(),
			})
		}
		if unset != nil {
			return unset
		}
	}
	if err := c.Flush(); err != nil {
		return nftablesError(err)
	}
	return nil
}

// comments returns the comments of the rules in a table, as "chain comment", in order, or nil if
// there is no such table.
func comments(t *nftables.Table) ([]string, error) {
	all, _, err := readTable(t)
	return all, err
}

// readTable returns the comments of the rules in a table, and the ports that its rules publish, by
// network.
func readTable(t *nftables.Table) (comments []string, published map[string]string, err error) {
	c, err := nftables.New(nftables.AsLasting())
	if err != nil {
		return nil, nil, nftablesError(err)
	}
	defer func() { _ = c.CloseLasting() }()
	// ListChain is not used, because its error does not distinguish a missing chain from a failure.
	found, err := c.ListChainsOfTableFamily(t.Family)
	if err != nil {
		return nil, nil, nftablesError(err)
	}
	ports := map[string][]spec.Published{}
	for _, name := range chainNames {
		i := slices.IndexFunc(found, func(chain *nftables.Chain) bool {
			return chain.Table.Name == t.Name && chain.Name == name && chain.Hooknum != nil
		})
		if i < 0 {
			continue
		}
		rules, err := c.GetRules(t, found[i])
		if err != nil {
			return nil, nil, nftablesError(err)
		}
		for _, r := range rules {
			text, _ := userdata.GetString(r.UserData, userdata.TypeComment)
			comments = append(comments, name+" "+text)
			addRecord(ports, text, r.UserData)
		}
	}
	published = map[string]string{}
	for network, all := range ports {
		published[network] = spec.FormatPublished(all)
	}
	return comments, published, nil
}

// tables returns the sites that have a table on this host.
func tables() ([]string, error) {
	c, err := nftables.New()
	if err != nil {
		return nil, nftablesError(err)
	}
	found, err := c.ListTablesOfFamily(nftables.TableFamilyINet)
	if err != nil {
		return nil, nftablesError(err)
	}
	var sites []string
	for _, t := range found {
		if site, ok := strings.CutPrefix(t.Name, tablePrefix); ok {
			sites = append(sites, site)
		}
	}
	return sites, nil
}

func nftablesError(err error) error {
	p := problem.New(problem.Unable, "nftables cannot be used").Because(err)
	if os.Geteuid() != 0 {
		return p.Try("run orrery as root")
	}
	return p.Try("the kernel needs nf_tables: modprobe nf_tables nft_masq nft_ct nft_nat")
}
