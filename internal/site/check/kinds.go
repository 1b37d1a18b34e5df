package check

import (
	"fmt"
	"slices"
	"strings"

	"orrery/internal/site"
)

// checkKind checks the kind of a network and the settings that the kind allows.
func checkKind(ix *index, found *findings, n *site.Network) {
	key := func(name string) []string { return at("network", n.Name, name) }
	if known := site.KindNames(); n.Kind != "" && !slices.Contains(known, n.Kind) {
		cure := "one of " + sentence(known)
		if nearest := found.nearest("kind", n.Kind, known); nearest != "" {
			cure = fmt.Sprintf("did you mean %q? Known: %s", nearest, sentence(known))
		}
		found.report(key("kind"), cure, "network %s is of kind %q, which does not exist", n.Name, n.Kind)
		return
	}
	kind := site.KindOf(n.Kind)
	switch {
	case n.HasUplink():
		checkUplink(ix, found, n)
	case kind.VirtualFunctions:
		checkPool(found, n)
	case kind.OnInterface && n.Interface == "":
		found.report(key("interface"), `write interface = "enp3s0", an interface of the host`,
			"%s network %s has no interface", n.Kind, n.Name)
	case kind.OnInterface:
		if what := invalidInterface(n.Interface); what != "" {
			found.report(key("interface"), `such as "enp3s0"`, "interface %q %s", n.Interface, what)
		}
	case kind.TakesInterfaces && n.Interface != "":
		found.report(key("interface"), fmt.Sprintf("set interface.%s = %q on one node", n.Name, n.Interface),
			"%s network %s has an interface, but each of its nodes needs its own", n.Kind, n.Name)
	case n.Interface != "":
		found.report(key("interface"), `remove it, or write kind = "macvlan", or vlan = 100`,
			"network %s names interface %q but does not use it", n.Name, n.Interface)
	}
	switch {
	case kind.Routed && !n.Gateway.IsValid():
		found.report(key("gateway"), "set a gateway",
			"%s network %s has no gateway, which its nodes need to reach one another",
			n.Kind, n.Name)
	case kind.WithoutHost && n.NAT:
		found.report(key("nat"), "remove it",
			"the host is not on %s network %s and cannot be its NAT router", n.Kind, n.Name)
	}
}

// maxPoolInterfaces is the maximum number of interfaces whose virtual functions a network uses. They
// are stored in the mark of the network's link, which has little space.
const maxPoolInterfaces = 4

// checkPool checks the interfaces whose virtual functions the nodes of a network take.
func checkPool(found *findings, n *site.Network) {
	key := func(name string) []string { return at("network", n.Name, name) }
	names := strings.Split(n.Interface, ",")
	for i, name := range names {
		switch what := invalidInterface(name); {
		case n.Interface == "":
			found.report(key("interface"), `write interface = "enp4s0f0", an interface of the host with virtual functions`,
				"%s network %s has no interface", n.Kind, n.Name)
		case what != "":
			found.report(key("interface"), `such as "enp4s0f0"`, "interface %q %s", name, what)
		case slices.Contains(names[:i], name):
			found.report(key("interface"), "name each once", "network %s names interface %q twice", n.Name, name)
		}
	}
	if len(names) > maxPoolInterfaces {
		found.report(key("interface"), "declare several networks", "network %s has %d interfaces; the maximum is %d", n.Name,
			len(names), maxPoolInterfaces)
	}
	if n.VLAN < 0 || n.VLAN > 4094 {
		found.report(key("vlan"), "1 to 4094", "vlan %d is out of range", n.VLAN)
	}
}

// checkUplink checks the settings that join a network's bridges with interfaces or bridges of the
// hosts.
func checkUplink(ix *index, found *findings, n *site.Network) {
	key := func(name string) []string { return at("network", n.Name, name) }
	switch {
	case !site.KindOf(n.Kind).Bridged:
		name := "vlan"
		if n.Bridge != "" {
			name = "bridge"
		}
		found.report(key(name), "remove it, or remove kind",
			"%s network %s has no bridge that could be joined to a wire", n.Kind, n.Name)
	case n.Bridge != "" && (n.VLAN != 0 || n.Interface != ""):
		found.report(key("bridge"), "set either bridge, or interface and vlan",
			"network %s would be joined to two wires",
			n.Name)
	case n.Bridge != "":
		if what := invalidInterface(n.Bridge); what != "" {
			found.report(key("bridge"), `such as "br0"`, "bridge %q %s", n.Bridge, what)
		}
	case n.VLAN < 1 || n.VLAN > 4094:
		found.report(key("vlan"), "1 to 4094", "vlan %d is out of range", n.VLAN)
	case n.Interface == "":
		found.report(key("interface"), `write interface = "enp3s0", an interface of the host`,
			"network %s has vlan %d but no interface", n.Name, n.VLAN)
	default:
		if what := invalidInterface(n.Interface); what != "" {
			found.report(key("interface"), `such as "enp3s0"`, "interface %q %s", n.Interface, what)
		}
	}
	if len(n.Host) > 0 && !n.NAT {
		found.report(key("host"), "write nat = true, or remove it",
			"network %s opens ports of the host, but without nat the host is not on it", n.Name)
	}
	for other := range each(ix.Networks) {
		if other.Name == n.Name {
			return
		}
		if other.HasUplink() && other.Bridge == n.Bridge && other.Interface == n.Interface && other.VLAN == n.VLAN {
			found.reportConflict(at("network", n.Name), at("network", other.Name),
				"give each network its own wire, or declare one network",
				"networks %s and %s are joined to the same wire", other.Name, n.Name)
		}
	}
}
