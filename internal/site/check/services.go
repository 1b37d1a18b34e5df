package check

import (
	"net/netip"
	"slices"

	"orrery/internal/site"
	"orrery/internal/site/service"
)

// checkServices checks the addresses that may move between nodes. No two machines may use the same address,
// and every node of a service must be able to have it.
func checkServices(ix *index, found *findings) {
	if len(ix.Services) == 0 {
		return
	}
	nodes, holders := ix.NodesByName(), holdersOn(ix)
	for i := range ix.Services {
		v := &ix.Services[i]
		key := at("service", v.Name)
		if !checkLabel(found, key, "service", v.Name) {
			continue
		}
		if _, taken := nodes[v.Name]; taken {
			found.reportConflict(key, at("node", v.Name), "choose another name: nodes know both by their names",
				"service %s has the name of a node", v.Name)
		}
		if v.Takeover != service.Fast {
			found.report(at("service", v.Name, "takeover"), `write takeover = "fast", or leave it out`,
				"service %s: takeover %q is unknown", v.Name, v.Takeover)
		}
		if v.Advertise < service.MinAdvertise || v.Advertise > service.MaxAdvertise || v.Advertise%minAdvertiseStep != 0 {
			found.report(at("service", v.Name, "advertise"), `such as "200ms"`,
				"service %s: advertise is %s; it must be whole hundredths of a second from %s to %s", v.Name, v.Advertise,
				service.MinAdvertise, service.MaxAdvertise)
		}
		checkServiceAddress(ix, found, v, ix.Services[:i], holders)
		checkServiceNodes(ix, found, v, nodes)
	}
}

// minAdvertiseStep is the unit of intervals in VRRP (RFC 5798, Max Adver Int).
const minAdvertiseStep = 10_000_000

// checkServiceAddress checks the address of a service against its network, the nodes there and earlier services.
func checkServiceAddress(ix *index, found *findings, v *service.Service, before []service.Service,
	holders map[place]*site.Node) {
	key := at("service", v.Name, "address")
	if !v.Address.IsValid() {
		found.report(key, `add address = "10.8.67.5", which no node has`, "service %s has no address", v.Name)
		return
	}
	if !v.Address.Is4() {
		found.report(key, "choose an IPv4 address of the network", "service %s: %s is not an IPv4 address", v.Name, v.Address)
		return
	}
	if v.Network == "" {
		return // which is reported
	}
	on, known := ix.Network(v.Network)
	if !known {
		found.reportUnknown(at("service", v.Name, "network"), "network", v.Network,
			names(ix.Networks, func(n *site.Network) string { return n.Name }))
		return
	}
	if kind := site.KindOf(on.Kind); !kind.Bridged {
		found.report(at("service", v.Name, "network"), "put the nodes on a network of kind bridge",
			"service %s: no address can move on network %s, whose kind is %s", v.Name, on.Name, kind.Name)
		return
	}
	const cure = "choose an address of the network that no node has"
	if wrong := invalidAddress(on, v.Address); wrong != "" {
		found.report(key, cure, "service %s: address %s %s", v.Name, v.Address, wrong)
		return
	}
	if v.Address == on.Gateway {
		found.report(key, cure, "service %s: address %s is the gateway of network %s", v.Name, v.Address, on.Name)
		return
	}
	if n := holders[place{on.Name, v.Address}]; n != nil {
		found.reportConflict(key, atNode(n, "net", on.Name), cure, "service %s: address %s is that of node %s", v.Name,
			v.Address, n.Name)
	}
	if v.RouterID() == 0 {
		found.report(key, "choose an address that does not end in .0", "service %s: address %s ends in .0", v.Name, v.Address)
	}
	for k := range before {
		other := &before[k]
		switch {
		case other.Network != v.Network:
		case other.Address == v.Address:
			found.reportConflict(key, at("service", other.Name, "address"), "give each its own",
				"service %s: address %s is that of service %s", v.Name, v.Address, other.Name)
		case other.RouterID() == v.RouterID() && slices.ContainsFunc(v.Nodes, other.Has):
			found.reportConflict(key, at("service", other.Name, "address"), "choose addresses with different last numbers",
				"services %s and %s have common nodes, and addresses whose last numbers are equal", other.Name, v.Name)
		}
	}
}

// A place is an address on a network.
type place struct {
	network string
	address netip.Addr
}

// holdersOn returns the nodes by their addresses on networks.
func holdersOn(ix *index) map[place]*site.Node {
	all := map[place]*site.Node{}
	for n := range each(ix.Nodes) {
		for _, nic := range n.NICs {
			all[place{nic.Network, nic.Address}] = n
		}
	}
	return all
}

// checkServiceNodes checks that all nodes of a service can have its address.
func checkServiceNodes(ix *index, found *findings, v *service.Service, nodes map[string]*site.Node) {
	key := at("service", v.Name, "nodes")
	switch n := len(v.Nodes); {
	case n == 0:
		found.report(key, `add nodes = ["portal{a,b}"]`, "service %s has no nodes", v.Name)
		return
	case n == 1 && ix.Twin == "": // a twin may leave out the others
		found.report(key, "add another node that does the same", "service %s has only node %s, so no other can take over",
			v.Name, v.Nodes[0])
	case n > service.MaxNodes:
		found.report(key, "choose fewer", "service %s has %d nodes; the maximum is %d", v.Name, n, service.MaxNodes)
		return
	}
	for _, name := range v.Nodes {
		n, known := nodes[name]
		if !known {
			continue
		}
		if v.Network != "" && !slices.Contains(n.Networks(), v.Network) {
			found.report(key, `add net.`+v.Network+` = "auto" to the node`, "service %s: node %s is not on network %s",
				v.Name, name, v.Network)
		}
		for _, r := range ix.rolesOf(n.Roles) {
			for _, use := range r.Volumes {
				if use.Exclusive && ix.Volume(use.Name).Shared {
					found.report(at("service", v.Name, "takeover"),
						"let each node have a volume of its own, or declare exclusive = false in the role if two nodes may write to it at once",
						"service %s: role %s of node %s has the exclusive volume %s, which its nodes share; with takeover = \"fast\", two nodes could write to it for a moment",
						v.Name, r.Name, name, use.Name)
				}
			}
		}
	}
}
