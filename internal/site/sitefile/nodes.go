package sitefile

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/diskio"
	"orrery/internal/strict"
)

// Limits of a site, so that no range of nodes exhausts the memory. The cost of all other work on a
// site grows with maxParts.
const (
	maxNodes = 100_000
	maxParts = 2_000_000 // nodes, plus the networks, roles and groups of each node
)

// nodes sets the nodes of the site, in order of id, with defaults and addresses.
func (l *loader) nodes() {
	networks, d := l.defaultNetworks(), l.decoder(Name)
	var nodes []site.Node
	for _, t := range l.file.Nodes {
		said := declaration{nodeTable: nodeTable{nodeSettings: l.file.Defaults.nodeSettings}, loader: l}
		d.Table(t.Value, "node."+t.Name, &said.nodeTable)
		copies, p := said.copies(t.Name, maxNodes-len(nodes))
		if p != nil {
			l.report.addAt(Name, t.At, p)
			continue
		}
		first := said.node(networks)
		each := 1 + len(first.NICs) + len(first.Roles) + len(first.AuthorizedKeys) + len(first.Publish)
		if l.parts += len(copies) * each; l.parts > maxParts {
			l.report.addAt(Name, t.At, tooManyParts())
			return
		}
		for _, c := range copies {
			if l.without[t.Name][c.name] {
				continue
			}
			if other, taken := l.report.nodes[c.name]; taken {
				l.report.addAt(Name, t.At, mistake("node %s is already declared (%s)", c.name,
					where(Name, other)).Try("%s", cureForTaken(l.file.Nodes, c.name, t.At, other)))
				continue
			}
			l.report.nodes[c.name] = t.At
			nodes = append(nodes, said.nthNode(first, c))
		}
	}
	slices.SortStableFunc(nodes, func(a, b site.Node) int { return cmp.Compare(a.ID, b.ID) })
	l.site.Nodes = nodes
}

// cureForTaken returns the cure for two tables that declare the same node.
func cureForTaken(all strict.Tables[*strict.Node], name string, at, other *strict.Node) string {
	if at.File != other.File {
		for _, t := range all {
			if t.At == other {
				return fmt.Sprintf("change the whole range in [node.%q]; or remove the node from it: remove = [%q]", t.Name,
					"node."+name)
			}
		}
	}
	return "choose another name"
}

func tooManyParts() *problem.Problem {
	return mistake("the nodes' networks, roles and groups are more than %d in all",
		maxParts).Try("make several sites")
}

// A declaration is a table of site.toml that declares a node or a range of nodes, merged with
// [defaults].
type declaration struct {
	nodeTable
	loader *loader
}

func (d *declaration) reportAt(at *strict.Node, p *problem.Problem) {
	d.loader.report.addAt(Name, at, p)
}

// node returns the first node of a declaration, without derived addresses.
func (d *declaration) node(networks []string) site.Node {
	n := site.Node{
		ID: d.ID, Image: cmp.Or(d.Image, d.loader.onlyImage()), Roles: d.Roles, Host: cmp.Or(d.Host, d.loader.onlyHost()),
		Engine: d.Engine, Privileged: d.Privileged,
		Syscalls:  slices.Sorted(slices.Values(d.Syscalls)),
		Devices:   d.Devices,
		Autostart: d.Autostart, Vars: d.Vars, Settings: d.Settings, Limits: d.Limits, VM: d.VM, Xen: d.Xen,
		NICs: d.addIPv6(d.setInterfaces(d.nics(networks))), SimulatedBy: d.SimulatedBy,
	}
	n.AuthorizedKeys, n.SSHUser = d.authorizedKeys(), d.SSHUser
	for _, p := range d.Publish {
		n.Publish = append(n.Publish, site.Publish(p))
	}
	if len(n.Publish) > maxPublish {
		d.reportAt(d.At.Keys["publish"], mistake("publish: %d entries are more than %d", len(n.Publish), maxPublish).
			Try(`write ranges: "8000-8063:8000-8063"`))
		n.Publish = nil
	}
	d.dropUnsupportedDefaults(&n)
	if d.Requirements != "" {
		n.Requirements = d.loader.require(d.Requirements,
			cmp.Or(d.At.Keys["requirements"], d.loader.file.Defaults.At.Keys["requirements"]))
	}
	return n
}

// dropUnsupportedDefaults removes the settings of [defaults] that a node with this engine cannot
// have, because a site may have both containers and virtual machines. Settings in the node's own
// table stay and are reported as mistakes.
func (d *declaration) dropUnsupportedDefaults(n *site.Node) {
	said := func(key string) bool { return d.At.Keys[key] != nil }
	if i, ok := d.loader.site.Image(n.Image); ok && i.Disk().Guest == site.NoGuest && !said("authorized_keys") {
		n.AuthorizedKeys = nil
	}
	if n.Engine != site.Xen && !said("xen") {
		n.Xen = site.XenGuest{}
	}
	if n.Engine != site.KVM && !said("vm") {
		n.VM = site.VM{}
	}
	if !n.Virtual() {
		return
	}
	n.Privileged = n.Privileged && said("privileged")
	if !said("syscalls") {
		n.Syscalls = nil
	}
	if !said("devices") {
		n.Devices = nil
	}
	if !said("swap") {
		n.Limits.Swap = nil
	}
	if !said("pids") {
		n.Limits.Pids = 0
	}
	if !said("disk") {
		n.Limits.Disk = diskio.Limits{}
	}
	if !said("memory") && d.loader.file.Defaults.At.Keys["memory"] == nil {
		n.Limits.Memory = site.DefaultVMMemory
	}
}

// nics returns the interfaces of a node with their declared addresses. The zero Addr means that the
// address is derived later.
func (d *declaration) nics(networks []string) []site.NIC {
	var nics []site.NIC
	if d.At.Keys["net"] == nil { // net = {} means no network
		for _, name := range networks {
			if d.loader.file.Defaults.Networks != nil || !d.takesInterfaces(name) || d.hasInterface(name) {
				nics = append(nics, site.NIC{Network: name})
			}
		}
		return nics
	}
	for _, net := range d.Net {
		nics = append(nics, d.nic(net))
	}
	return nics
}

// nic returns an interface that is declared by its address, or by a table.
func (d *declaration) nic(net strict.Named[*strict.Node]) site.NIC {
	nic, address, at := site.NIC{Network: net.Name}, "", net.At
	switch value := net.At.Value.(type) {
	case string:
		address = value
	case map[string]any:
		var t interfaceTable
		d.loader.decoder(Name).Table(net.At, "net."+net.Name, &t)
		address, nic.Traffic = t.Address, t.Limits
		if key := net.At.Keys["address"]; key != nil {
			at = key
		}
	default:
		d.reportAt(at, mistake("net.%s must be an address or a table, not %s", net.Name, strict.Describe(value)).
			Try(`write "auto", or { address = "auto", rate = "1Gbit/s" }`))
		return nic
	}
	if address != "auto" && !d.loader.report.bad[at] {
		if p := (*strict.Address)(&nic.Address).Parse(address); p != nil {
			d.reportAt(at, mistake("net.%s: %s", net.Name, p.What).Try(`%s or "auto"`, p.Cure))
		}
	}
	return nic
}

// takesInterfaces reports whether nodes join a network only by taking an interface of the host.
func (d *declaration) takesInterfaces(network string) bool {
	n, ok := d.loader.site.Network(network)
	return ok && site.KindOf(n.Kind).TakesInterfaces
}

// hasInterface reports whether a node takes an interface of the host on a network.
func (t *nodeTable) hasInterface(network string) bool {
	return slices.ContainsFunc(t.Interface, func(taken strict.Named[string]) bool { return taken.Name == network })
}

// nicOn returns the interface of a node on a network that a key refers to. If there is none, it
// reports a mistake and returns nil.
func (d *declaration) nicOn(nics []site.NIC, key, network string, at *strict.Node) *site.NIC {
	i := slices.IndexFunc(nics, func(nic site.NIC) bool { return nic.Network == network })
	if i < 0 {
		d.reportAt(at, mistake("%s.%s: the node is not on network %s", key, network, network).
			Try(`add net.%s = "auto", or remove it`, network))
		return nil
	}
	return &nics[i]
}

// setInterfaces sets the host interfaces that a node takes.
func (d *declaration) setInterfaces(nics []site.NIC) []site.NIC {
	for _, taken := range d.Interface {
		if nic := d.nicOn(nics, "interface", taken.Name, taken.At); nic != nil {
			nic.Interface = taken.Value
		}
	}
	return nics
}

// addIPv6 adds the IPv6 addresses that a node may send from.
func (d *declaration) addIPv6(nics []site.NIC) []site.NIC {
	for _, said := range d.IPv6 {
		nic := d.nicOn(nics, "ipv6", said.Name, said.At)
		if nic == nil {
			continue
		}
		for _, text := range said.Value {
			a, err := netip.ParseAddr(text)
			if err != nil {
				d.reportAt(said.At, mistake("ipv6.%s: %q is not an address", said.Name, text).
					Try(`such as "2001:db8::11"`))
				continue
			}
			nic.IPv6 = append(nic.IPv6, a)
		}
	}
	return nics
}

// A nodeCopy is one of the nodes of a declaration.
type nodeCopy struct {
	name    string
	nth     int    // ids and addresses count up by it
	perHost string // the declaration, if the node is that of a host, or ""
	host    string
}

// copies returns the nodes of a declaration: one, a range, or one on each host.
func (d *declaration) copies(name string, most int) ([]nodeCopy, *problem.Problem) {
	if d.At.Keys["per"] != nil || d.At.Keys["hosts"] != nil {
		return d.perHost(name, most)
	}
	names, p := expand(name, most)
	all := make([]nodeCopy, len(names))
	for i, name := range names {
		all[i] = nodeCopy{name: name, nth: i}
	}
	return all, p
}

// nthNode returns one of the nodes of a declaration, of which first is the first.
func (d *declaration) nthNode(first site.Node, c nodeCopy) site.Node {
	n, i := first, c.nth
	n.Name = c.name
	if c.perHost != "" {
		n.Host, n.PerHost = c.host, c.perHost
	}
	if d.At.Keys["id"] != nil {
		n.ID += i
	}
	if c.perHost == "" { // hosts have ports of their own
		n.Publish = d.nthPublish(first.Publish, c.name, i)
	}
	n.NICs = slices.Clone(first.NICs)
	for k := range n.NICs {
		nic := &n.NICs[k]
		nic.IPv6 = site.IPv6AddressesAfter(nic.IPv6, i)
		if nic.Address.IsValid() {
			nic.Address = site.AddressAfter(nic.Address, i)
			continue
		}
		if network, ok := d.loader.site.Network(nic.Network); ok {
			nic.Address = site.DeriveAddress(d.loader.site.Name, n.Name, n.ID, *network)
		}
	}
	return n
}

// nthPublish returns the ports that the i-th node of a declaration publishes.
func (d *declaration) nthPublish(first []site.Publish, name string, i int) []site.Publish {
	var all []site.Publish
	for k, p := range first {
		nth, ok := p.After(i)
		if at := d.At.Keys["publish"].Items[k]; !ok && !d.loader.report.bad[at] {
			d.reportAt(at, mistake("publish: node %s would get a port above 65535, because the ports of a range count up", name).
				Try("begin with a lower port"))
		}
		all = append(all, nth)
	}
	return all
}

func (l *loader) defaultNetworks() []string {
	if chosen := l.file.Defaults.Networks; chosen != nil {
		return *chosen
	}
	var all []string
	for _, n := range l.site.Networks {
		all = append(all, n.Name)
	}
	return all
}

func (l *loader) onlyImage() string {
	if len(l.site.Images) == 1 {
		return l.site.Images[0].Name
	}
	return ""
}

func (l *loader) onlyHost() string {
	if len(l.site.Hosts) == 1 {
		return l.site.Hosts[0].Name
	}
	return ""
}
