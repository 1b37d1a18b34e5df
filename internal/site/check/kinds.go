package check

import (
	"fmt"
	"slices"

	"orrery/internal/site"
)

// checkKind checks the kind of a network and the settings that the kind allows.
func checkKind(ix *index, found *findings, n *site.Network) {
	key := func(name string) []string { return at("network", n.Name, name) }
	if known := site.KindNames(); n.Kind != "" && !slices.Contains(known, n.Kind) {
		cure := "one of " + sentence(known)
		if nearest := found.nearest("kind", n.Kind, known); nearest != "" {
			cure = fmt.Sprintf("did you mean %q? There are %s", nearest, sentence(known))
		}
		found.report(key("kind"), cure, "network %s is of kind %q, which does not exist", n.Name, n.Kind)
		return
	}
	kind := site.KindOf(n.Kind)
	switch {
	case n.HasUplink():
		checkUplink(ix, found, n)
	case kind.OnInterface && n.Interface == "":
		found.report(key("interface"), `write interface = "enp3s0", an interface of the host`,
			"%s network %s is on no interface", n.Kind, n.Name)
	case kind.OnInterface:
		if what := invalidInterface(n.Interface); what != "" {
			found.report(key("interface"), `such as "enp3s0"`, "interface %q %s", n.Interface, what)
		}
	case kind.TakesInterfaces && n.Interface != "":
		found.report(key("interface"), fmt.Sprintf("say interface.%s = %q of one node", n.Name, n.Interface),
			"%s network %s has an interface, where each of its nodes takes one", n.Kind, n.Name)
	case n.Interface != "":
		found.report(key("interface"), `take it out, or write kind = "macvlan", or vlan = 100`,
			"network %s is on no interface of the host, and names %q", n.Name, n.Interface)
	}
	switch {
	case kind.Routed && !n.Gateway.IsValid():
		found.report(key("gateway"), "give a gateway", "%s network %s has no gateway, through which nodes reach one another",
			n.Kind, n.Name)
	case kind.WithoutHost && n.NAT:
		found.report(key("nat"), "take it out",
			"the host is not on %s network %s and cannot masquerade for it", n.Kind, n.Name)
	}
}

// checkUplink checks the settings that join a network's bridges with interfaces or bridges of the
// hosts.
func checkUplink(ix *index, found *findings, n *site.Network) {
	key := func(name string) []string { return at("network", n.Name, name) }
	switch {
	case !site.KindOf(n.Kind).Bridged:
		name := "vlan"
		if n.VLAN == 0 {
			name = "bridge"
		}
		found.report(key(name), "take it out, or leave kind out",
			"%s network %s cannot be joined with a wire by its bridges, for it has none", n.Kind, n.Name)
	case n.Bridge != "" && (n.VLAN != 0 || n.Interface != ""):
		found.report(key("bridge"), "say either bridge, or interface and vlan", "network %s would be joined with two wires",
			n.Name)
	case n.Bridge != "":
		if what := invalidInterface(n.Bridge); what != "" {
			found.report(key("bridge"), `such as "br0"`, "bridge %q %s", n.Bridge, what)
		}
	case n.VLAN < 1 || n.VLAN > 4094:
		found.report(key("vlan"), "1 to 4094", "vlan %d does not exist", n.VLAN)
	case n.Interface == "":
		found.report(key("interface"), `write interface = "enp3s0", an interface of the host`,
			"network %s is on vlan %d of no interface", n.Name, n.VLAN)
	default:
		if what := invalidInterface(n.Interface); what != "" {
			found.report(key("interface"), `such as "enp3s0"`, "interface %q %s", n.Interface, what)
		}
	}
	if len(n.Host) > 0 && !n.NAT {
		found.report(key("host"), "write nat = true, or take it out",
			"network %s opens ports of the host, which is on it only with nat: its gateway is a router on the wire", n.Name)
	}
	for other := range each(ix.Networks) {
		if other.Name == n.Name {
			return
		}
		if other.HasUplink() && other.Bridge == n.Bridge && other.Interface == n.Interface && other.VLAN == n.VLAN {
			found.reportConflict(at("network", n.Name), at("network", other.Name),
				"networks on one wire would be one: give each its own, or make them one",
				"networks %s and %s are joined with the same wire", other.Name, n.Name)
		}
	}
}
