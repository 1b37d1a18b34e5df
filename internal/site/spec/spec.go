// Package spec describes each network, layer and node of a site in full: as plain data for the code
// that makes them, with digests that tell whether what exists is still what is declared.
//
// A spec is plain data: it is recorded beside what was made from it, and comparing the two gives the plan.
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
)

// A Network is a network as a host has it.
type Network struct {
	Site    string `json:"site"`
	Name    string `json:"name"`
	Bridge  string `json:"bridge"`
	Subnet  string `json:"subnet"`            // CIDR
	Gateway string `json:"gateway,omitempty"` // the host's address with prefix length
	NAT     bool   `json:"nat,omitempty"`
	// Router: not the host has the gateway's address but a router of the network's own, as in a twin,
	// whose gateway may be one that the host has for production.
	Router bool   `json:"router,omitempty"`
	Host   string `json:"host,omitempty"`  // what of the host its nodes may use: site.Openings, with commas between them
	Spoof  bool   `json:"spoof,omitempty"` // its nodes may send as others than themselves
	// Metadata: with NAT, its nodes reach what the host has at link-local addresses, such as what a
	// cloud tells of itself.
	Metadata bool `json:"metadata,omitempty"`
	// Protocols are those that its nodes may send besides IP and ARP: site.FormatProtocols.
	Protocols string `json:"protocols,omitempty"`
	MTU       int    `json:"mtu"`

	Kind   string    `json:"kind,omitempty"`   // one of site.KindNames, or VethPair; "": site.Bridge
	Parent string    `json:"parent,omitempty"` // of a kind that is on an interface of the host: that interface
	Ends   [2]string `json:"ends,omitzero"`    // of VethPair

	// Uplink joins its bridge with something that the host has; the zero Uplink: nothing does.
	Uplink Uplink `json:"uplink,omitzero"`

	// joins its bridge with those on other hosts; the zero VXLAN: it is on this one only
	VXLAN VXLAN `json:"vxlan,omitzero"`
}

// An Uplink is a VLAN on an interface of the host, or a bridge of it. Orrery makes neither, and
// never changes them.
type Uplink struct {
	Interface string `json:"interface,omitempty"`
	VLAN      int    `json:"vlan,omitempty"`
	Bridge    string `json:"bridge,omitempty"`
}

// String says it in words: "vlan 100 of eth1", "bridge br0".
func (u Uplink) String() string {
	switch {
	case u == Uplink{}:
		return ""
	case u.Bridge != "":
		return "bridge " + u.Bridge
	}
	return "vlan " + strconv.Itoa(u.VLAN) + " of " + u.Interface
}

// VethPair is the Network.Kind of a veth pair whose ends stand in for interfaces of the host. It has no subnet.
const VethPair = "vethpair"

// Joins reports whether the network is a veth pair of which an interface is an end.
func (n *Network) Joins(name string) bool {
	return n.Kind == VethPair && name != "" && (n.Ends[0] == name || n.Ends[1] == name)
}

// HostAddress returns the address of the host on the network, with prefix length, or "" if the host
// has none: a router has the gateway's then.
func (n *Network) HostAddress() string {
	if n.Router {
		return ""
	}
	return n.Gateway
}

// Quarantined returns a site's network as the quarantine of a release has it: apart, and with no way out.
func (n Network) Quarantined(release int) Network {
	n.Site = site.Quarantine(n.Site, release)
	n.Bridge = site.BridgeName(n.Site, n.Name)
	n.Gateway, n.NAT, n.Router, n.Host, n.Metadata = "", false, false, "", false
	n.VXLAN, n.Uplink = VXLAN{}, Uplink{}
	n.Kind, n.Parent = "", "" // what is shut in is on a bridge, whatever it is on when it is live
	return n
}

// A Node is a node as an engine makes it and as roles configure it.
type Node struct {
	Site         string `json:"site"` // the site's key
	Name         string `json:"name"`
	ID           int    `json:"id"`                // with the release's number before it
	Release      int    `json:"release,omitempty"` // 0: none
	Staged       bool   `json:"staged,omitempty"`  // in quarantine, not live
	Engine       string `json:"engine"`
	MachineID    string `json:"machine_id"`
	Distribution string `json:"distribution,omitempty"` // of the base image; "": recorded by a former version
	Base         string `json:"base"`                   // digest of the base image's recipe
	// digest of the topmost role layer's recipe; "": the roles need none
	Layer string   `json:"layer,omitempty"`
	Below []string `json:"below,omitempty"` // the role layers between Layer and Base, the topmost first
	// digest of the recipe of the kernel's layer, just above Base; "": the node runs on the host's
	// kernel
	Kernel string `json:"kernel,omitempty"`
	// of the role layers' recipes: they tell why a layer is another
	Parts      Parts         `json:"parts,omitempty"`
	Privileged bool          `json:"privileged,omitempty"`
	Syscalls   []string      `json:"syscalls,omitempty"` // that it may use of those that containers are refused
	Autostart  bool          `json:"autostart"`
	Limits     site.Limits   `json:"limits"`
	VM         site.VM       `json:"vm,omitzero"`
	Xen        site.XenGuest `json:"xen,omitzero"`
	Disk       site.Disk     `json:"disk,omitzero"` // of a node whose base is a disk image
	NICs       []NIC         `json:"nics,omitempty"`
	Mounts     []Mount       `json:"mounts,omitempty"`
	Config     Config        `json:"config"`
}

// Layers returns the layers that the node stands on, the topmost first.
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

// GuestMemory is the memory of a virtual machine, in bytes: whole MiB, of which each processor has pages.
func (n *Node) GuestMemory() int64 {
	const whole = 1 << 20
	return (cmp.Or(n.Limits.Memory, int64(site.DefaultVMMemory)) + whole - 1) / whole * whole
}

// Imported reports whether the node boots a disk image that others have made.
func (n *Node) Imported() bool { return n.Disk != site.Disk{} }

// KeepsData reports whether data outlives the node: on a volume, on a device of the host, or on
// hardware that it has to itself, such as an NVMe drive. The device of its root (site.RootDisk) is
// wiped when the node goes.
func (n *Node) KeepsData() bool { return len(n.Mounts) > 0 || n.KeepsHardware() }

// KeepsHardware reports whether the node writes to a device of the host, or to hardware that it has
// to itself, which no snapshot has.
func (n *Node) KeepsHardware() bool {
	return len(n.VM.PCI) > 0 || slices.ContainsFunc(n.VM.Disks, func(d site.Drive) bool { return d.IsDevice() })
}

// WritesDisks reports whether the node is a machine with disks, for which its guest's kernel holds
// back what was written to them for up to half a minute.
func (n *Node) WritesDisks() bool { return n.Imported() || len(n.VM.Drives()) > 0 }

// A NIC is a network interface of a node. It is comparable, and its JSON is that of the nodes that
// former versions have made.
type NIC struct {
	Name    string       `json:"name"` // in the node: eth0, eth1, …
	Network string       `json:"network"`
	Bridge  string       `json:"bridge"`
	HostEnd string       `json:"host_end"` // the interface on the host
	MAC     string       `json:"mac"`
	Address netip.Prefix `json:"address"`           // which it gets as it starts; see Addresses
	Gateway string       `json:"gateway,omitempty"` // only on the interface with the default route
	MTU     int          `json:"mtu"`

	// Kind is that of the network as it is when the node is live; see Node.KindOf.
	Kind   string `json:"kind,omitempty"`
	Parent string `json:"parent,omitempty"` // interface of the host: on which the node's is, or which it takes
	Via    string `json:"via,omitempty"`    // of a routed network: the address of the host
	IPv6   string `json:"ipv6,omitempty"`   // addresses that the node sets itself, with commas between them
}

// Addresses returns all addresses from which the node may send on the network. Those of IPv6 are of no subnet.
func (nic NIC) Addresses() []netip.Prefix {
	all := []netip.Prefix{nic.Address}
	for text := range strings.SplitSeq(nic.IPv6, ",") {
		if a, err := netip.ParseAddr(text); err == nil && a.Is6() {
			all = append(all, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return all
}

// KindOf returns the kind of link that an interface of the node is: on a bridge other than the live
// network's, which is that of a quarantine, it is a site.Bridge, whatever it is when the node is
// live.
func (n *Node) KindOf(nic NIC) string {
	if nic.Kind == "" || nic.Bridge != site.BridgeName(n.Site, nic.Network) {
		return site.Bridge
	}
	return nic.Kind
}

// LinkKind returns the kind that KindOf names.
func (n *Node) LinkKind(nic NIC) site.NetworkKind { return site.KindOf(n.KindOf(nic)) }

// Linked returns the interfaces of a node without what can be changed while it runs: the bridges on
// which they are.
func Linked(n *Node) []NIC {
	nics := slices.Clone(n.NICs)
	for i := range nics {
		if site.KindOf(nics[i].Kind).Bridged {
			nics[i].Bridge = ""
		}
	}
	return nics
}

// Takes reports whether the node takes an interface of the host from it while it runs.
func (n *Node) Takes(nic NIC) bool { return n.LinkKind(nic).TakesInterfaces }

// A Mount is persistent data that a node sees.
type Mount struct {
	Volume string `json:"volume"`
	Path   string `json:"path"`             // in the node
	Source string `json:"source,omitempty"` // directory of the host; "": with the host's state
	site.Remote
	Shared bool `json:"shared,omitempty"` // one directory for all nodes
	// Exclusive: never used by the nodes of two releases at once.
	Exclusive bool `json:"exclusive,omitempty"`
	// Copy: not the volume itself, but a copy for the quarantine of a release, which begins so
	// (site.Empty, site.Snapshot); or NoCopy.
	Copy    string `json:"copy,omitempty"`
	Release int    `json:"release,omitempty"` // of which it is the copy
	Owner   string `json:"owner"`
	Mode    uint32 `json:"mode"`
}

// From returns the source of the volume itself, even if this is a copy.
func (m *Mount) From() site.VolumeSource {
	from, _ := site.SourceOf(m.Remote, m.Source)
	return from
}

// Address returns where the data is of a volume that is not on the host.
func (m *Mount) Address() string {
	_, address := site.SourceOf(m.Remote, m.Source)
	return address
}

// Exclusive reports whether a node has, when it is live, volumes that are not for the nodes of two
// releases at once.
func (n *Node) Exclusive() bool {
	return slices.ContainsFunc(n.Mounts, func(m Mount) bool { return m.Exclusive })
}

// Holds reports whether a node has, or may have, such volumes now, and not copies of them.
func (n *Node) Holds() bool {
	return slices.ContainsFunc(n.Mounts, func(m Mount) bool { return m.Exclusive && m.Copy == "" })
}

// NoCopy is the Mount.Copy of a volume that a node has when it is live, and has not now.
const NoCopy = "none"

// Config is what roles do on a node once it runs: digests by what they are of, such as
// "receptor: file /etc/receptor.json". No value of a secret is in it, nor a digest of one.
type Config struct {
	Parts    Parts    `json:"parts,omitempty"`
	Services []string `json:"services,omitempty"`
	Health   string   `json:"health,omitempty"` // digest of the health checks
	Active   Parts    `json:"active,omitempty"` // what is done only on a live node
}

// Running returns the services that run on a node, if it is live those that run only then as well.
func (c *Config) Running(live bool) []string {
	all := slices.Clone(c.Services)
	for _, part := range slices.Sorted(maps.Keys(c.Active)) {
		if _, service, ok := strings.Cut(part, ": service "); ok && live && !slices.Contains(all, service) {
			all = append(all, service)
		}
	}
	return all
}

// Parts are digests by the name of what they are of.
type Parts map[string]string

// Digest names content: the first 24 hexadecimal digits of the SHA-256 of its JSON.
func Digest(x any) string {
	text, err := json.Marshal(x)
	if err != nil {
		panic("spec: " + err.Error()) // plain data always marshals
	}
	return DigestBytes(text)
}

// DigestBytes names bytes: the first 24 hexadecimal digits of their SHA-256.
func DigestBytes(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:12])
}
