package check

import (
	"fmt"
	"slices"
	"strings"

	"orrery/internal/site"
)

// illInterface tells what is wrong with the name of an interface of a host (netdevice(7): at most 15 characters), or gives "".
func illInterface(name string) string {
	switch {
	case name == "":
		return "has no name"
	case len(name) > 15:
		return "has more than 15 characters"
	case name == "lo":
		return "is the loopback interface"
	case name == "." || name == ".." || strings.ContainsAny(name, "/:%, \t\n\v\f\r") || strings.ToValidUTF8(name, "") != name:
		return "is no name of an interface"
	}
	for _, prefix := range []string{"orb", "orv", "oro", "orx", "orl", "orw"} {
		if digits := strings.TrimPrefix(name, prefix); digits != name && (len(digits) == 10 || site.IsRouted(name)) {
			return "is a name that Orrery gives itself"
		}
	}
	return ""
}

// checkKind checks what a network is, and what can be said of one that is so.
func checkKind(ix *index, found *findings, n *site.Network) {
	key := func(name string) []string { return at("network", n.Name, name) }
	if known := site.KindNames(); n.Kind != "" && !slices.Contains(known, n.Kind) {
		cure := "one of " + sentence(known)
		if nearest := found.nearest("kind", n.Kind, known); nearest != "" {
			cure = fmt.Sprintf("did you mean %q? There are %s", nearest, sentence(known))
		}
		found.wrong(key("kind"), cure, "network %s is of kind %q, which does not exist", n.Name, n.Kind)
		return
	}
	kind := site.KindOf(n.Kind)
	switch {
	case n.Uplinked():
		checkUplink(ix, found, n)
	case kind.OnInterface && n.Interface == "":
		found.wrong(key("interface"), `write interface = "enp3s0", an interface of the host`, "%s network %s is on no interface", n.Kind, n.Name)
	case kind.OnInterface:
		if what := illInterface(n.Interface); what != "" {
			found.wrong(key("interface"), `such as "enp3s0"`, "interface %q %s", n.Interface, what)
		}
	case kind.TakesInterfaces && n.Interface != "":
		found.wrong(key("interface"), fmt.Sprintf("say interface.%s = %q of one node", n.Name, n.Interface),
			"%s network %s has an interface, where each of its nodes takes one", n.Kind, n.Name)
	case n.Interface != "":
		found.wrong(key("interface"), `take it out, or write kind = "macvlan", or vlan = 100`, "network %s is on no interface of the host, and names %q", n.Name, n.Interface)
	}
	switch {
	case kind.Routed && !n.Gateway.IsValid():
		found.wrong(key("gateway"), "give a gateway", "%s network %s has no gateway, through which nodes reach one another", n.Kind, n.Name)
	case kind.WithoutHost && n.NAT:
		found.wrong(key("nat"), "take it out", "the host is not on %s network %s and cannot masquerade for it", n.Kind, n.Name)
	}
}

// checkUplink checks what joins the bridges of a network with what hosts have.
func checkUplink(ix *index, found *findings, n *site.Network) {
	key := func(name string) []string { return at("network", n.Name, name) }
	switch {
	case !site.KindOf(n.Kind).Bridged:
		name := "vlan"
		if n.VLAN == 0 {
			name = "bridge"
		}
		found.wrong(key(name), "take it out, or leave kind out", "%s network %s cannot be joined with a wire by its bridges, for it has none", n.Kind, n.Name)
	case n.Bridge != "" && (n.VLAN != 0 || n.Interface != ""):
		found.wrong(key("bridge"), "say either bridge, or interface and vlan", "network %s would be joined with two wires", n.Name)
	case n.Bridge != "":
		if what := illInterface(n.Bridge); what != "" {
			found.wrong(key("bridge"), `such as "br0"`, "bridge %q %s", n.Bridge, what)
		}
	case n.VLAN < 1 || n.VLAN > 4094:
		found.wrong(key("vlan"), "1 to 4094", "vlan %d does not exist", n.VLAN)
	case n.Interface == "":
		found.wrong(key("interface"), `write interface = "enp3s0", an interface of the host`, "network %s is on vlan %d of no interface", n.Name, n.VLAN)
	default:
		if what := illInterface(n.Interface); what != "" {
			found.wrong(key("interface"), `such as "enp3s0"`, "interface %q %s", n.Interface, what)
		}
	}
	if len(n.Host) > 0 && !n.NAT {
		found.wrong(key("host"), "write nat = true, or take it out", "network %s opens ports of the host, which is on it only with nat: its gateway is a router on the wire", n.Name)
	}
	for other := range each(ix.Networks) {
		if other.Name == n.Name {
			return
		}
		if other.Uplinked() && other.Bridge == n.Bridge && other.Interface == n.Interface && other.VLAN == n.VLAN {
			found.add(Mistake{Key: at("network", n.Name), Other: at("network", other.Name), What: fmt.Sprintf("networks %s and %s are joined with the same wire", other.Name, n.Name), Cure: "networks on one wire would be one: give each its own, or make them one"})
		}
	}
}

func checkVethPairs(ix *index, found *findings) {
	for _, veth := range ix.VethPairs {
		key := at("vethpair", veth.Name)
		checkLabel(found, key, "vethpair", veth.Name)
		checkMTU(found, at("vethpair", veth.Name, "mtu"), veth.MTU)
		for i, end := range veth.Ends {
			switch what := illInterface(end); {
			case end == "" && i == 1 && veth.Ends[0] == "":
			case end == "":
				found.wrong(at("vethpair", veth.Name, "ends"), `write ends = ["w0", "w1"]`, "veth pair %s does not have two ends", veth.Name)
			case what != "":
				found.wrong(at("vethpair", veth.Name, "ends", i), `such as "w0"`, "end %q of veth pair %s %s", end, veth.Name, what)
			case i == 1 && veth.Ends[0] == end:
				found.wrong(at("vethpair", veth.Name, "ends", i), "give each its own name", "both ends of veth pair %s are called %q", veth.Name, end)
			}
		}
	}
}

// A use is one user of an interface of a host.
type use struct {
	who  string
	host string // "": of any
	key  []string
}

// checkInterfaces checks who takes what of the hosts: whatever it is, only one can have it.
func checkInterfaces(ix *index, found *findings) {
	checkVethEnds(ix, found)
	taken := map[string][]use{}
	take := func(name, kind string, t use) {
		if name == "" {
			return
		}
		for _, other := range taken[name] {
			if other.host == t.host || other.host == "" || t.host == "" {
				found.add(Mistake{
					Key: t.key, Other: other.key, What: fmt.Sprintf("interface %q of %s is already that of %s", name, t.who, other.who),
					Cure: "give each its own" + kind,
				})
				return
			}
		}
		taken[name] = append(taken[name], t)
	}
	for n := range each(ix.Networks) {
		if site.KindOf(n.Kind).OnInterface {
			take(n.Interface, "; networks on one would be one", use{who: "network " + n.Name, key: at("network", n.Name, "interface")})
		}
	}
	for n := range each(ix.Nodes) {
		for _, nic := range n.NICs {
			kind, known := ix.kindByName[nic.Network]
			key := atNode(n, "interface", nic.Network)
			switch {
			case !known:
			case !kind.TakesInterfaces && nic.Interface != "":
				found.wrong(key, "take it out, or make the network exclusive", "node %s takes interface %q on network %s, which is not exclusive",
					n.Name, nic.Interface, nic.Network)
			case !kind.TakesInterfaces:
			case nic.Interface == "":
				found.wrong(key, fmt.Sprintf(`write interface.%s = "enp3s0f1"`, nic.Network),
					"node %s takes no interface on %s network %s", n.Name, kind.Name, nic.Network)
			default:
				if what := illInterface(nic.Interface); what != "" {
					found.wrong(key, `such as "enp3s0f1"`, "interface %q %s", nic.Interface, what)
				}
				take(nic.Interface, "", use{"node " + n.Name, n.Host, key})
			}
		}
	}
}

// checkVethEnds checks that no two veth pairs have ends of one name.
func checkVethEnds(ix *index, found *findings) {
	ends := map[string]string{}
	for _, veth := range ix.VethPairs {
		for i, end := range veth.Ends {
			if other, taken := ends[end]; taken && end != "" && other != veth.Name {
				found.add(Mistake{
					Key: at("vethpair", veth.Name, "ends", i), Other: at("vethpair", other, "ends"),
					What: fmt.Sprintf("end %q of veth pair %s is already that of veth pair %s", end, veth.Name, other), Cure: "give each its own",
				})
			}
			ends[end] = veth.Name
		}
	}
}
