package check

import (
	"fmt"
	"slices"
	"strings"

	"orrery/internal/site"
)

// invalidInterface returns what is wrong with the name of a host interface, or "". A name has at most
// 15 characters (netdevice(7)).
func invalidInterface(name string) string {
	switch {
	case name == "":
		return "has no name"
	case len(name) > 15:
		return "has more than 15 characters"
	case name == "lo":
		return "is the loopback interface"
	case name == "." || name == ".." || strings.ContainsAny(name, "/:%, \t\n\v\f\r") ||
		strings.ToValidUTF8(name, "") != name:
		return "is not a valid interface name"
	}
	for _, prefix := range []string{"orb", "orv", "oro", "orx", "orl", "orw", "orf", "ort"} {
		if digits := strings.TrimPrefix(name, prefix); digits != name && (len(digits) == 10 || site.IsRoutedLink(name)) {
			return "is a name that Orrery uses itself"
		}
	}
	return ""
}

func checkVethPairs(ix *index, found *findings) {
	for _, veth := range ix.VethPairs {
		key := at("vethpair", veth.Name)
		checkLabel(found, key, "vethpair", veth.Name)
		checkMTU(found, at("vethpair", veth.Name, "mtu"), veth.MTU)
		for i, end := range veth.Ends {
			switch what := invalidInterface(end); {
			case end == "" && i == 1 && veth.Ends[0] == "":
			case end == "":
				found.report(at("vethpair", veth.Name, "ends"), `write ends = ["w0", "w1"]`, "veth pair %s does not have two ends",
					veth.Name)
			case what != "":
				found.report(at("vethpair", veth.Name, "ends", i), `such as "w0"`, "end %q of veth pair %s %s", end, veth.Name,
					what)
			case i == 1 && veth.Ends[0] == end:
				found.report(at("vethpair", veth.Name, "ends", i), "give each end its own name",
					"both ends of veth pair %s are called %q", veth.Name, end)
			}
		}
	}
}

// A use is one user of a host interface.
type use struct {
	who  string
	host string // "" for any host
	key  []string
	// pool is not "" for a network that uses only virtual functions of the interface. Networks with
	// different pools can share it.
	pool string
}

// checkInterfaces checks that every interface of the hosts has only one user.
func checkInterfaces(ix *index, found *findings) {
	checkVethEnds(ix, found)
	taken := map[string][]use{}
	take := func(name, kind string, t use) {
		if name == "" {
			return
		}
		for _, other := range taken[name] {
			if t.pool != "" && other.pool != "" && t.pool != other.pool {
				continue
			}
			if other.host == t.host || other.host == "" || t.host == "" {
				found.reportConflict(t.key, other.key, "give each its own"+kind,
					"interface %q of %s is already used by %s", name,
					t.who,
					other.who)
				return
			}
		}
		taken[name] = append(taken[name], t)
	}
	for n := range each(ix.Networks) {
		const joined = "; networks on the same one would be joined"
		if site.KindOf(n.Kind).VirtualFunctions {
			names := strings.Split(n.Interface, ",")
			for i, name := range names {
				if !slices.Contains(names[:i], name) { // else it is reported already
					take(name, ", or another vlan"+joined, use{who: "network " + n.Name, key: at("network", n.Name, "interface"),
						pool: fmt.Sprintf("vlan %d", n.VLAN)})
				}
			}
		}
		if site.KindOf(n.Kind).OnInterface {
			take(n.Interface, joined,
				use{who: "network " + n.Name, key: at("network", n.Name, "interface")})
		}
	}
	for n := range each(ix.Nodes) {
		for _, nic := range n.NICs {
			kind, known := ix.kindByName[nic.Network]
			key := atNode(n, "interface", nic.Network)
			switch {
			case !known:
			case !kind.TakesInterfaces && nic.Interface != "":
				found.report(key, "remove it, or make the network exclusive",
					"node %s has interface %q on network %s, which is not exclusive",
					n.Name, nic.Interface, nic.Network)
			case !kind.TakesInterfaces:
			case kind.VirtualFunctions && nic.Interface != "":
				found.report(key, "remove it", "node %s has interface %q on %s network %s, which assigns a virtual function itself",
					n.Name, nic.Interface, kind.Name, nic.Network)
			case kind.VirtualFunctions:
			case nic.Interface == "":
				found.report(key, fmt.Sprintf(`write interface.%s = "enp3s0f1"`, nic.Network),
					"node %s has no interface on %s network %s", n.Name, kind.Name, nic.Network)
			default:
				if what := invalidInterface(nic.Interface); what != "" {
					found.report(key, `such as "enp3s0f1"`, "interface %q %s", nic.Interface, what)
				}
				take(nic.Interface, "", use{who: "node " + n.Name, host: n.Host, key: key})
			}
		}
	}
}

// checkVethEnds checks that no two veth pairs have an end with the same name.
func checkVethEnds(ix *index, found *findings) {
	ends := map[string]string{}
	for _, veth := range ix.VethPairs {
		for i, end := range veth.Ends {
			if other, taken := ends[end]; taken && end != "" && other != veth.Name {
				found.reportConflict(at("vethpair", veth.Name, "ends", i), at("vethpair", other, "ends"), "give each its own",
					"end %q of veth pair %s is already used by veth pair %s", end, veth.Name, other)
			}
			ends[end] = veth.Name
		}
	}
}
