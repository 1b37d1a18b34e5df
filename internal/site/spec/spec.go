// Package spec derives the complete description of each network, layer and node.
// Digests in the description show whether what exists still matches the site.
//
// A spec is plain data. It is recorded next to what was built from it. The plan is the difference
// between the recorded spec and the desired one.
package spec

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/site"
	"orrery/internal/site/device"
	"orrery/internal/site/traffic"
)

// A Network is a network as a host creates it.
type Network struct {
	Site    string `json:"site"`
	Name    string `json:"name"`
	Bridge  string `json:"bridge"`
	Subnet  string `json:"subnet"`            // CIDR
	Gateway string `json:"gateway,omitempty"` // the host's address with prefix length
	NAT     bool   `json:"nat,omitempty"`
	// Router means that a router of the network has the gateway's address, and not the host. This
	// is so in a twin, where the host may already use the address for production. Without NAT, the router
	// leads nowhere, and only Answers are found there.
	Router bool   `json:"router,omitempty"`
	Host   string `json:"host,omitempty"`  // ports of the host that nodes may use (site.ParsePortRanges)
	Spoof  bool   `json:"spoof,omitempty"` // nodes may use source addresses of others
	// Metadata means that, with NAT, nodes reach the link-local addresses that the host reaches,
	// such as the metadata service of a cloud.
	Metadata bool `json:"metadata,omitempty"`
	// Protocols are the protocols that nodes may send, other than IP and ARP, in the form of
	// site.FormatProtocols.
	Protocols string `json:"protocols,omitempty"`
	// Publish has the ports of the host that lead to nodes on this host; see FormatPublished.
	Publish string `json:"publish,omitempty"`
	// Answers has the active services that nodes on this host answer at the gateway's address; see AnswersOn.
	Answers string `json:"answers,omitempty"`
	MTU     int    `json:"mtu"`

	Kind   string    `json:"kind,omitempty"`   // one of site.KindNames, or VethPair, or "" for site.Bridge
	Parent string    `json:"parent,omitempty"` // the host's interface, for kinds that use one
	Ends   [2]string `json:"ends,omitzero"`    // of VethPair

	// Uplink joins the network's bridge with an interface or bridge of the host. The zero Uplink
	// means none.
	Uplink Uplink `json:"uplink,omitzero"`

	// VXLAN joins the network's bridge with those on other hosts. The zero VXLAN means that the
	// network is only on this host.
	VXLAN VXLAN `json:"vxlan,omitzero"`
}

// An Uplink is a VLAN on an interface of the host, or a bridge of the host. Orrery neither creates
// nor changes the interface or the bridge.
type Uplink struct {
	Interface string `json:"interface,omitempty"`
	VLAN      int    `json:"vlan,omitempty"`
	Bridge    string `json:"bridge,omitempty"`
}

// String returns the uplink for display: "vlan 100 of eth1", "bridge br0".
func (u Uplink) String() string {
	switch {
	case u == Uplink{}:
		return ""
	case u.Bridge != "":
		return "bridge " + u.Bridge
	}
	return "vlan " + strconv.Itoa(u.VLAN) + " of " + u.Interface
}

// VethPair is the Network.Kind of a veth pair whose ends replace interfaces of the host. It has no
// subnet.
const VethPair = "vethpair"

// HasEnd reports whether the network is a veth pair and name is one of its ends.
func (n *Network) HasEnd(name string) bool {
	return n.Kind == VethPair && name != "" && (n.Ends[0] == name || n.Ends[1] == name)
}

// HostAddress returns the address of the host on the network, with prefix length. It returns "" if
// a router has the gateway's address, or if there is no gateway.
func (n *Network) HostAddress() string {
	if n.Router {
		return ""
	}
	return n.Gateway
}

// Quarantined returns the network as it is in a release's quarantine: isolated, with no way out.
func (n Network) Quarantined(release int) Network {
	n.Site = site.Quarantine(n.Site, release)
	n.Bridge = site.BridgeName(n.Site, n.Name)
	n.Gateway, n.NAT, n.Router, n.Host, n.Metadata = "", false, false, "", false
	n.VXLAN, n.Uplink, n.Publish, n.Answers = VXLAN{}, Uplink{}, "", ""
	n.Kind, n.Parent = "", "" // a network in quarantine is on a bridge, whatever its kind when live
	return n
}

// A Node is a node as an engine creates it and as roles configure it.
type Node struct {
	Site      string `json:"site"` // the site's key
	Name      string `json:"name"`
	ID        int    `json:"id"`                // with the release's number in front
	Release   int    `json:"release,omitempty"` // or 0
	Staged    bool   `json:"staged,omitempty"`  // in quarantine, not live
	Engine    string `json:"engine"`
	MachineID string `json:"machine_id"`
	// Distribution is that of the base image, or "" if an earlier version recorded the node.
	Distribution string `json:"distribution,omitempty"`
	Base         string `json:"base"` // digest of the base image's recipe
	// Layer is the digest of the topmost role layer's recipe, or "" if the roles need no layer.
	Layer string   `json:"layer,omitempty"`
	Below []string `json:"below,omitempty"` // the role layers between Layer and Base, the topmost first
	// Kernel is the digest of the recipe of the kernel layer, just above Base. It is "" if the node
	// runs on the host's kernel.
	Kernel string `json:"kernel,omitempty"`
	// Parts are the parts of the role layers' recipes. They explain why a layer differs.
	Parts      PartDigests `json:"parts,omitempty"`
	Privileged bool        `json:"privileged,omitempty"`
	// Syscalls are the permitted system calls of those that containers are refused.
	Syscalls  []string        `json:"syscalls,omitempty"`
	Devices   []device.Device `json:"devices,omitempty"` // of the host, which a container may use
	Autostart bool            `json:"autostart"`
	Limits    site.Limits     `json:"limits"`
	VM        site.VM         `json:"vm,omitzero"`
	Xen       site.XenGuest   `json:"xen,omitzero"`
	Disk      site.Disk       `json:"disk,omitzero"` // only if the base is a disk image
	NICs      []NIC           `json:"nics,omitempty"`
	Mounts    []Mount         `json:"mounts,omitempty"`
	Config    Config          `json:"config"`
}

// Layers returns the digests of the node's layers, the topmost first.
func (n *Node) Layers() []string {
	var all []string
	if n.Layer != "" {
		all = append([]string{n.Layer}, n.Below...)
	}
	if n.Kernel != "" {
		all = append(all, n.Kernel)
	}
	return append(all, n.Base)
}

// GuestMemory returns the memory of a virtual machine in bytes, rounded up to whole MiB. Every
// processor architecture has pages that divide a MiB.
func (n *Node) GuestMemory() int64 {
	const whole = 1 << 20
	return (cmp.Or(n.Limits.Memory, int64(site.DefaultVMMemory)) + whole - 1) / whole * whole
}

// Imported reports whether the node boots a disk image from another vendor.
func (n *Node) Imported() bool { return n.Disk != site.Disk{} }

// KeepsData reports whether data outlives the node: on a volume, on a device of the host, or on
// passed-through hardware such as an NVMe drive. The device of the node's root (site.RootDisk) does
// not count, because it is wiped when the node is destroyed.
func (n *Node) KeepsData() bool { return len(n.Mounts) > 0 || n.KeepsHardware() }

// KeepsHardware reports whether the node writes to a device of the host, or to hardware that is
// passed through to it. No snapshot contains that data.
func (n *Node) KeepsHardware() bool {
	return len(n.VM.PCI) > 0 || len(n.Devices) > 0 ||
		slices.ContainsFunc(n.VM.Disks, func(d site.Drive) bool { return d.IsDevice() })
}

// WritesDisks reports whether the node is a machine with disks. The guest's kernel delays writes to
// them for up to half a minute.
func (n *Node) WritesDisks() bool { return n.Imported() || len(n.VM.Drives()) > 0 }

// A NIC is a network interface of a node. It is comparable. Its JSON form is compatible with the
// nodes that earlier versions recorded.
type NIC struct {
	Name       string       `json:"name"` // inside the node: eth0, eth1, …
	Network    string       `json:"network"`
	Bridge     string       `json:"bridge"`
	HostIfName string       `json:"host_end"` // the interface on the host
	MAC        string       `json:"mac"`
	Address    netip.Prefix `json:"address"`           // set at start; see Addresses
	Gateway    string       `json:"gateway,omitempty"` // only on the interface with the default route
	MTU        int          `json:"mtu"`

	// Kind is the network's kind when the node is live; see Node.KindOf.
	Kind string `json:"kind,omitempty"`
	// Parent is the host interface that carries the node's interface, or that the node takes, or the
	// name of the virtual function that the node takes (sriov.Name).
	Parent string `json:"parent,omitempty"`
	Via    string `json:"via,omitempty"`  // on a routed network, the address of the host
	IPv6   string `json:"ipv6,omitempty"` // addresses that the node sets itself, comma-separated
	// Moving are the addresses of services (site.Service), comma-separated. The node may send from one of
	// them only while it tells the others of the service that it holds it; see package ports.
	Moving string `json:"moving,omitempty"`
	VLAN   int    `json:"vlan,omitempty"` // of a virtual function, or 0
	// Traffic has the limits of what passes through the interface. They can change while the node
	// runs.
	Traffic traffic.Limits `json:"traffic,omitzero"`
}

// TakenName returns the name that the host's interface has while the node has it, before it gets its
// name in the node. A virtual function gets a name of its own, because its driver's name can change.
func (nic NIC) TakenName() string {
	if site.KindOf(nic.Kind).VirtualFunctions {
		return "orf" + strings.TrimPrefix(nic.HostIfName, "orv")
	}
	return nic.Parent
}

// Addresses returns all addresses that the node may send from on the network. IPv6 addresses have
// full-length prefixes, because they belong to no subnet.
func (nic NIC) Addresses() []netip.Prefix {
	all := []netip.Prefix{nic.Address}
	for text := range strings.SplitSeq(nic.IPv6, ",") {
		if a, err := netip.ParseAddr(text); err == nil && a.Is6() {
			all = append(all, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return all
}

// MovingAddresses returns the addresses of services that the node may have on the network.
func (nic NIC) MovingAddresses() (all []netip.Addr) {
	for text := range strings.SplitSeq(nic.Moving, ",") {
		if a, err := netip.ParseAddr(text); err == nil && a.Is4() {
			all = append(all, a)
		}
	}
	return all
}

// KindOf returns the kind of the link of a node's interface. If the interface is on another bridge
// than the live network's, the node is in quarantine, and the kind is site.Bridge. Otherwise it is
// the kind of the network.
func (n *Node) KindOf(nic NIC) string {
	if nic.Kind == "" || nic.Bridge != site.BridgeName(n.Site, nic.Network) {
		return site.Bridge
	}
	return nic.Kind
}

// LinkKind returns the site.NetworkKind of the link; see KindOf.
func (n *Node) LinkKind(nic NIC) site.NetworkKind { return site.KindOf(n.KindOf(nic)) }

// WithoutTraffic returns interfaces without the limits of their traffic, which can change whatever the
// state of the node is.
func WithoutTraffic(nics []NIC) []NIC {
	nics = slices.Clone(nics)
	for i := range nics {
		nics[i].Traffic = traffic.Limits{}
	}
	return nics
}

// WithoutBridges returns the interfaces of a node without the bridges of bridged networks and the limits of
// traffic, which can change while the node runs.
func WithoutBridges(n *Node) []NIC {
	nics := WithoutTraffic(n.NICs)
	for i := range nics {
		if site.KindOf(nics[i].Kind).Bridged {
			nics[i].Bridge = ""
		}
	}
	return nics
}

// TakesInterface reports whether the node takes an interface of the host while it runs.
func (n *Node) TakesInterface(nic NIC) bool { return n.LinkKind(nic).TakesInterfaces }

// A Mount is persistent data that is mounted in a node.
type Mount struct {
	Volume string `json:"volume"`
	Path   string `json:"path"`             // inside the node
	Source string `json:"source,omitempty"` // directory on the host, or "" for the host's state directory
	site.Remote
	Shared bool `json:"shared,omitempty"` // one directory shared by all nodes
	// Exclusive means that the nodes of two releases never use the volume at once.
	Exclusive bool `json:"exclusive,omitempty"`
	// Copy is "" for the volume itself. For the copy in a release's quarantine it is the initial
	// content (site.CopyEmpty, site.CopySnapshot), or NoCopy.
	Copy    string `json:"copy,omitempty"`
	Release int    `json:"release,omitempty"` // release that the copy belongs to
	Owner   string `json:"owner"`
	Mode    uint32 `json:"mode"`
	// Layer means that the volume begins with what the node's layers have at Path, with its owners and modes.
	Layer bool `json:"layer,omitempty"`
}

// From returns the source of the volume, or of the original volume if the mount is a copy.
func (m *Mount) From() site.VolumeSource {
	from, _ := site.SourceOf(m.Remote, m.Source)
	return from
}

// Address returns the address of the data if it is not on the host, or "".
func (m *Mount) Address() string {
	_, address := site.SourceOf(m.Remote, m.Source)
	return address
}

// Exclusive reports whether a node, when it is live, has volumes that the nodes of two releases
// must not use at once.
func (n *Node) Exclusive() bool {
	return slices.ContainsFunc(n.Mounts, func(m Mount) bool { return m.Exclusive })
}

// HoldsExclusive reports whether a node has, or may have, exclusive volumes now, as opposed to copies of
// them.
func (n *Node) HoldsExclusive() bool {
	return slices.ContainsFunc(n.Mounts, func(m Mount) bool { return m.Exclusive && m.Copy == "" })
}

// NoCopy is the Mount.Copy of a volume that the node has only when it is live.
const NoCopy = "none"

// Config describes what roles do on a running node. It has digests by the name of what they cover,
// such as "receptor: file /etc/receptor.json". It contains neither values of secrets nor digests of
// them.
type Config struct {
	Parts    PartDigests `json:"parts,omitempty"`
	Services []string    `json:"services,omitempty"`
	Health   string      `json:"health,omitempty"` // digest of the health checks
	Active   PartDigests `json:"active,omitempty"` // done only on a live node
	// Secrets has the generations of the secrets that roles of the node read, by the name under which
	// hosts store them.
	Secrets map[string]int `json:"secrets,omitempty"`
}

// Generation returns the generation of a secret. It is 1 if none is recorded, as on nodes that were
// configured before secrets had generations.
func (c *Config) Generation(secret string) int { return max(1, c.Secrets[secret]) }

// ChangedSecrets returns the stored names of the secrets that two configurations have in different
// generations, sorted. A secret that only one of them has is a changed part.
func ChangedSecrets(old, desired *Config) []string {
	var all []string
	for name := range desired.Secrets {
		if old.Generation(name) != desired.Generation(name) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// Running returns the services that run on a node. If live is set, they include those that run only
// on live nodes.
func (c *Config) Running(live bool) []string {
	all := slices.Clone(c.Services)
	for _, part := range slices.Sorted(maps.Keys(c.Active)) {
		if _, service, ok := strings.Cut(part, ": service "); ok && live && !slices.Contains(all, service) {
			all = append(all, service)
		}
	}
	return all
}

// PartDigests are digests, keyed by the name of what they cover.
type PartDigests map[string]string

// Digest returns the first 24 hexadecimal digits of the SHA-256 of x as JSON.
func Digest(x any) string {
	text, err := json.Marshal(x)
	if err != nil {
		panic("spec: " + err.Error()) // plain data always marshals
	}
	return DigestBytes(text)
}

// DigestBytes returns the first 24 hexadecimal digits of the SHA-256 of b.
func DigestBytes(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:12])
}
