package network

import (
	"strings"

	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// mark says, in the alias of a bridge, what it was made for: "orrery SITE NETWORK SUBNET GATEWAY nat", with "-" for what
// there is not, and "outlet" in place of "nat" if a router of its own does that. It holds all that the rules follow from, so that the table of a site can be written anew
// when only one of its networks is at hand.
func mark(n spec.Network) string {
	gateway, nat := "-", "-"
	if n.Gateway != "" {
		gateway = n.Gateway
	}
	switch {
	case n.Outlet:
		nat = "outlet"
	case n.NAT:
		nat = "nat"
	}
	return strings.Join([]string{"orrery", n.Site, n.Name, n.Subnet, gateway, nat}, " ")
}

// readMark gives the network that an alias marks.
func readMark(alias string) (spec.Network, bool) {
	words := strings.Fields(alias)
	if len(words) != 6 || words[0] != "orrery" {
		return spec.Network{}, false
	}
	n := spec.Network{
		Site: words[1], Name: words[2], Bridge: site.BridgeName(words[1], words[2]), Subnet: words[3],
		NAT: words[5] == "nat" || words[5] == "outlet", Outlet: words[5] == "outlet",
	}
	if words[4] != "-" {
		n.Gateway = words[4]
	}
	return n, check(n) == nil // anybody may write an alias
}
