package network

import (
	"net"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"orrery/internal/network/ends"
	"orrery/internal/network/kind"
	"orrery/internal/network/ports"
	"orrery/internal/network/vxlan"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// Observe returns the actual networks of a site and of its quarantines on this host, or of all
// sites if siteName is "". Addresses, masquerading and the like are read from the kernel. What
// differs from what Make made appears as a difference from the declaration or as drift.
func Observe(siteName string) ([]observe.Network, error) {
	all, err := bridges()
	if err != nil {
		return nil, problem.New(problem.Failed, "list the host's links").Because(err)
	}
	tabled, err := tables()
	if err != nil {
		if len(all) == 0 { // without nftables there are no networks; Make reports the error
			return nil, nil
		}
		return nil, err
	}
	guards, err := ports.Open()
	if err != nil {
		return nil, err
	}
	links, err := ends.ListConsistent(netlink.LinkList)
	if err != nil {
		return nil, problem.New(problem.Failed, "list the host's links").Because(err)
	}
	joints, err := vxlan.Observe(links)
	if err != nil {
		return nil, err
	}
	sites := slices.Clone(tabled)
	for _, b := range all {
		if b.marked {
			sites = append(sites, b.mark.Site)
		}
	}
	slices.Sort(sites)
	var networks []observe.Network
	for _, s := range slices.Compact(sites) {
		if siteName != "" && s != siteName && !site.IsQuarantine(siteName, s) {
			continue
		}
		found, err := observeSite(s, all, guards, links, joints)
		if err != nil {
			return nil, err
		}
		networks = append(networks, found...)
	}
	return networks, nil
}

func observeSite(siteName string, all []bridge, g *ports.Table, links []netlink.Link,
	joints *vxlan.State) ([]observe.Network, error) {
	existing, published, err := readTable(siteTable(siteName))
	if err != nil {
		return nil, err
	}
	shall, err := desiredRules(siteNetworks(all, siteName, joints, published))
	if err != nil {
		return nil, err
	}
	changed := !slices.Equal(existing, ruleComments(shall))
	masqueraded, known := parseComments(existing)
	var networks []observe.Network
	for _, b := range all {
		if !b.marked || b.mark.Site != siteName {
			continue
		}
		n, err := observeBridge(b, g, links)
		if err != nil {
			return nil, err
		}
		n.NAT, n.Publish = masqueraded[n.Name], published[n.Name]
		joined, drift := joints.WithDrift(n.Network)
		n.Network, n.Drift = joined, append(n.Drift, drift...)
		delete(known, n.Name)
		if changed && kind.Of(n.Kind).HasNodes() {
			n.AddDrift(observe.RulesChanged)
		}
		networks = append(networks, n)
	}
	// There are rules but no bridge: it was removed by hand.
	for name := range known {
		gone := spec.Network{Site: siteName, Name: name, Bridge: site.BridgeName(siteName, name)}
		networks = append(networks, observe.Network{Network: gone, Drift: []observe.NetworkDrift{observe.LinkMissing}})
	}
	slices.SortFunc(networks, func(a, b observe.Network) int { return strings.Compare(a.Name, b.Name) })
	return networks, nil
}

// observeBridge returns a network as its bridge is. The subnet is taken from the mark. The gateway is
// the address of the bridge, so a bridge outside of the subnet shows there. For a network with a
// router, the gateway is taken from the mark, unless the bridge has an address, which it should
// not.
func observeBridge(b bridge, g *ports.Table, links []netlink.Link) (observe.Network, error) {
	n, attrs := observe.Network{Network: b.mark}, b.link.Attrs()
	n.MTU = attrs.MTU
	k := kind.Of(n.Kind)
	if b.link.Type() != k.LinkType() {
		n.AddDrift(observe.LinkForeign)
	}
	if k.Observe(&n, b.link); !k.HasNodes() {
		return n, nil
	}
	addresses, err := ends.ListConsistent(func() ([]netlink.Addr, error) {
		return netlink.AddrList(b.link, netlink.FAMILY_V4)
	})
	if err != nil && !ends.IsNotFound(err) {
		return n, problem.New(problem.Failed, "list the addresses of %s", attrs.Name).Because(err)
	}
	var texts []string
	for _, a := range addresses {
		texts = append(texts, a.IPNet.String())
	}
	if attrs.Flags&net.FlagUp == 0 {
		n.AddDrift(observe.LinkDown)
	}
	if lacksAntiSpoof(g, b.mark, links) {
		n.AddDrift(observe.PortsOpen)
	}
	if n.Router && checkRouter(n.Network, b.link) != nil {
		n.AddDrift(observe.RouterChanged)
	}
	if len(texts) > 0 || !n.Router {
		n.Gateway = strings.Join(texts, " ")
	}
	return n, nil
}

// ruleComments returns the comments of the rules that a table must have, in the format of comments.
func ruleComments(wanted []rule) []string {
	var all []string
	for _, chain := range chainNames {
		for _, r := range wanted {
			if r.chain == chain {
				all = append(all, chain+" "+r.comment())
			}
		}
	}
	return all
}

// parseComments returns the networks that rules masquerade, and all networks that have rules.
func parseComments(comments []string) (masqueraded, known map[string]bool) {
	masqueraded, known = map[string]bool{}, map[string]bool{}
	for _, c := range comments {
		chain, text, _ := strings.Cut(c, " ")
		name, why, ok := strings.Cut(text, ": ")
		if !ok || name == ofHost {
			continue
		}
		known[name] = true
		if chain == postrouting && strings.HasPrefix(why, "nat ") {
			masqueraded[name] = true
		}
	}
	return masqueraded, known
}
