package site

import (
	"net/netip"
	"strings"
	"time"

	"orrery/internal/site/device"
	"orrery/internal/site/diskio"
	"orrery/internal/site/service"
	"orrery/internal/site/traffic"
)

// A Site is everything that a site directory declares.
type Site struct {
	Name string `toml:"name"`
	ID   string `toml:"id"` // distinguishes sites with the same name on any host, or ""
	Twin string // name of the twin, or "" for the site itself
	// Original is the site that a twin was derived from, or nil. A name that Original knows is not
	// reported as misspelt, even if the twin leaves it out.
	Original *Site
	Stage    int    // number of the release in quarantine, or 0
	Owner    string `toml:"owner"`
	// Owners are the people who may change the site without being root. They are user names and,
	// with "@" in front, group names.
	Owners     []string `toml:"owners"`
	Twins      TwinRules
	Production bool           `toml:"production"` // destructive commands ask for the site's name
	Vars       map[string]any `toml:"vars"`       // free values for templates
	Settings   Settings       `json:",omitempty"` // of roles, on all nodes
	// RolesPath are the directories of roles that the site has in common with others.
	RolesPath rolePaths `toml:"roles_path" json:"-"`
	// Extends are the absolute paths of the site directories whose site files this one extends, the
	// nearest first.
	Extends []string `json:"-"`

	Hosts     []Host
	Networks  []Network
	VethPairs []VethPair
	Images    []Image
	Nodes     []Node // in order of id
	Groups    []Group
	Services  []service.Service `json:",omitempty"`
	Active    []service.Active  `json:",omitempty"` // services
	Volumes   []Volume
	Secrets   []Secret
	Releases  []Release
	Roles     []Role
	Tests     []Test
	Hooks     []Hook
	Mirror    Mirror

	Backup   Backup
	Snapshot Schedule // of all nodes
	Watch    Watch
}

// Key returns the name under which a host stores the site. It differs from Name for twins. A twin
// has the same node names and addresses as its original, but its own directories, control groups,
// bridges and nftables tables.
func (s *Site) Key() string {
	if s.Twin == "" {
		return s.Name
	}
	return s.Name + "." + s.Twin
}

// TwinRules limit which twins users other than root may create of a site.
type TwinRules struct {
	Members []string      `toml:"members"`               // who may create twins; same form as Owners
	Most    int           `toml:"most" default:"1"`      // twins that one member may have at a time
	Expires time.Duration `toml:"expires" default:"24h"` // maximum lifetime of a twin
	NAT     bool          `toml:"nat"`                   // nodes of the twin may reach external networks
	Data    bool          `toml:"data"`                  // volumes of the twin may start with the site's data
}

// A Hook is notified when an event happens on the site. It is a program on the host, or a server.
type Hook struct {
	Name    string
	Alert   bool          `json:",omitempty"`            // declared as [alert]
	On      []string      `toml:"on"`                    // subset of event.All
	Command []string      `toml:"command"`               // receives the event on standard input
	User    string        `toml:"user" default:"nobody"` // user on the host that runs Command
	URL     string        `toml:"url"`                   // the event is posted here, instead of Command
	Timeout time.Duration `toml:"timeout" default:"10s"`
}

// A Host is a machine that runs nodes.
type Host struct {
	Name    string
	Address string  `toml:"address" default:"local"` // "local", or user@address for SSH
	Cpus    float64 `toml:"cpus"`                    // processors, or 0 to ask the host
	Memory  int64   `toml:"memory" unit:"size"`      // bytes, or 0 to ask the host
	// Oversubscribe is the factor by which the host's processors may be assigned to nodes that name
	// no host. 0 means 1.
	Oversubscribe float64 `toml:"oversubscribe" json:",omitzero"`
	// Underlay is the address at which other hosts reach this host for traffic between nodes. If it
	// is the zero Addr, the address in Address is used. If that is not an IP address, the host's
	// address on a subnet shared with the other hosts is used.
	Underlay netip.Addr `toml:"underlay" json:",omitzero"`
	// Number counts the ids and addresses of the nodes that each host has; 0 stands for the host's
	// place among the hosts. See NumberOf.
	Number int `toml:"number" json:",omitzero"`
}

// Local reports whether Orrery itself runs on the host.
func (h Host) Local() bool { return h.Address == "" || h.Address == "local" }

// UnderlayAddress returns the address at which other hosts reach this host, or the zero Addr if the site
// does not declare one.
func (h Host) UnderlayAddress() netip.Addr {
	if h.Underlay.IsValid() {
		return h.Underlay
	}
	text := h.Address[strings.LastIndex(h.Address, "@")+1:]
	if whole, err := netip.ParseAddrPort(text); err == nil {
		return whole.Addr()
	}
	at, _ := netip.ParseAddr(strings.Trim(text, "[]"))
	return at
}

// A Network connects nodes and gives them addresses. It is a layer 2 segment or, if its kind is
// Routed, a layer 3 one.
type Network struct {
	Name   string
	Subnet netip.Prefix `toml:"subnet"`
	// Gateway is the host's address, or the zero Addr if the network has no gateway.
	Gateway netip.Addr `toml:"gateway"`
	NAT     bool       `toml:"nat"` // masquerade traffic that leaves through the gateway
	// Host lists the ports of the host that nodes may use (ParsePortRanges). Nodes may always ping
	// the gateway.
	Host     []string `toml:"host"`
	Spoof    bool     `toml:"spoof"`    // nodes may use source addresses of others
	Metadata bool     `toml:"metadata"` // with NAT, nodes reach a cloud's link-local metadata service
	// Protocols are the protocols that nodes may send, other than IP and ARP (ParseProtocols).
	Protocols []string `toml:"protocols"`
	Encrypt   bool     `toml:"encrypt"` // traffic between hosts is encrypted
	// MTU is in bytes. 0 means 1500, or less if the nodes are on several hosts and the link between
	// the hosts allows only a smaller MTU.
	MTU  int    `toml:"mtu"`
	Kind string `toml:"kind"` // one of Kinds, or "" for Bridge
	// Interface is the host's interface that carries a Macvlan network. For a Bridge network it is
	// the interface whose VLAN joins the network with a physical one. For a network of virtual
	// functions it is the interface whose functions the nodes take, or several, separated by commas.
	Interface string `toml:"interface" unit:"list"`
	VLAN      int    `toml:"vlan"` // VLAN ID on Interface, or 0
	// Bridge is an existing bridge of the host that is joined with the network's own bridge.
	Bridge string `toml:"bridge"`
	// Isolated is set for networks of a twin. Nodes keep their gateway address, but the host does
	// not answer there, because it already answers for the original. Traffic leaves the network
	// only with NAT.
	Isolated bool
	Place    string `json:"-"` // of its table, for messages: "site.toml:12"
}

// Wired reports whether a live network is connected to existing interfaces or bridges of the hosts.
// Such a network reaches other hosts, and anyone else on the same wire.
func (n *Network) Wired() bool {
	return KindOf(n.Kind).Wired() || n.HasUplink()
}

// HasUplink reports whether the network's bridges are joined with a VLAN or a bridge of the hosts.
func (n *Network) HasUplink() bool {
	return n.VLAN != 0 && !KindOf(n.Kind).VirtualFunctions || n.Bridge != ""
}

// ReachedByHost reports whether a host can reach its nodes on the network: at its gateway address, by a
// router on the wire, or at an address of its own on Bridge.
func (n *Network) ReachedByHost() bool {
	return !n.Isolated && !KindOf(n.Kind).WithoutHost && (n.Gateway.IsValid() || n.Bridge != "")
}

// An Image is the root file system, or the disk, from which a node starts.
type Image struct {
	Name string
	// Distribution is the name of the distribution, or "" for the one that has the suite.
	Distribution string   `toml:"distribution" json:",omitempty"`
	Suite        string   `toml:"suite"`      // suite from which the image is built
	Components   []string `toml:"components"` // components of the suite, or none for main
	Packages     []string `toml:"packages"`   // in addition to the packages that every node needs
	// Import is the absolute path of a root file system tarball, OCI archive, OCI layout or disk
	// image. It replaces Suite.
	Import string `toml:"import"`
	// From is the path to read Import from if a release's copy of a site directory contains the
	// file, or "".
	From string
	// Stamp identifies the content of the imported file, so that a new file is a new image. It
	// consists of the size and modification time, or see ContentStamp.
	Stamp string
	// Remote is set if another host describes the image. Import is then not a file of this machine.
	Remote bool `json:"-"`
	// Settings of a disk image; see Image.Disk.
	Firmware string `toml:"firmware" json:",omitempty"`
	Guest    string `toml:"guest" json:",omitempty"`
	Login    string `toml:"login" json:",omitempty"`
	Bus      string `toml:"bus" json:",omitempty"`
}

// A Mirror holds the package sources. Where a field is empty, the host's own source is used.
type Mirror struct {
	Apt      string   `toml:"apt"`
	Security string   `toml:"security"`
	PyPI     string   `toml:"pypi"`
	Proxy    string   `toml:"proxy"`
	Hosts    []string `toml:"hosts" json:",omitempty"` // HOST or HOST:PORT that builds may reach in addition
	CA       []byte   // PEM
	// Key is the armoured key that signs Apt and Security, or nil for the distribution's key.
	Key []byte `json:",omitempty"`
}

// A Node is a logical machine.
type Node struct {
	Name       string
	ID         int
	Release    int // release that the node belongs to, or 0
	Image      string
	Roles      []string // as declared; Site.RolesOf adds the roles that they need
	Groups     []string // all groups that contain the node, sorted
	Host       string   // "" until the node is placed
	PerHost    string   `json:",omitempty"` // the declaration of which each host has a node, or ""
	Engine     string
	Privileged bool
	Syscalls   []string // subset of NodeSyscalls that its programs may use; sorted
	// Devices are the devices of the host that a container may use.
	Devices      []device.Device `json:",omitempty"`
	Autostart    bool
	Limits       Limits
	VM           VM // settings of a virtual machine; see Virtual
	Xen          XenGuest
	NICs         []NIC     // the first is the primary interface
	Publish      []Publish `json:",omitempty"`
	Vars         map[string]any
	Settings     Settings `json:",omitempty"` // of its roles
	Requirements Requirements
	// AuthorizedKeys are lines of authorized_keys(5): who may log in as SSHUser by SSH.
	AuthorizedKeys []string
	SSHUser        string // or "" for root; see Login
	SimulatedBy    string // role that a twin uses instead of the node's own, or ""
	// StandsFor lists, in a twin, the roles that the simulator replaces. Other nodes find the
	// simulator under these roles.
	StandsFor []string
	Aliases   []string // names of the nodes that it represents in a collapsed twin
}

// NodeSyscalls are the system calls that a container may use only if it names them.
var NodeSyscalls = []string{IOUring, Socketcall}

// System calls that a container can request. With io_uring, programs open sockets (among other
// things) without passing any system call filter. With socketcall, 32-bit programs open sockets of
// all kinds.
const (
	IOUring    = "io_uring"
	Socketcall = "socketcall"
)

// FullID returns the number of the node on its host. It is the id, with the release number in front
// if the node belongs to a release. For example, node 101 of release 700 has number 700101. The
// containers of KAT-7 were numbered in this way.
func (n *Node) FullID() int { return FullID(n.Release, n.ID) }

// Networks returns the names of the node's networks in the order of its interfaces.
func (n *Node) Networks() []string {
	names := make([]string, len(n.NICs))
	for i, nic := range n.NICs {
		names[i] = nic.Network
	}
	return names
}

// Limits are the resource limits of a node. A zero value means no limit.
type Limits struct {
	Cpus float64 `toml:"cpus" json:"cpus,omitempty"` // processors
	// Pin lists the processors that the node may run on, such as "0-3,8" (cpuset(7)).
	Pin    string `toml:"pin" json:"pin,omitempty"`
	Memory int64  `toml:"memory" unit:"size" json:"memory,omitempty"` // bytes
	Swap   *int64 `toml:"swap" unit:"size" json:"swap,omitempty"`     // bytes, or nil for no limit
	Pids   int    `toml:"pids" json:"pids,omitempty"`                 // processes and threads
	// Disk limits what a container reads from each disk of its host and writes to it.
	Disk diskio.Limits `toml:"disk" json:"disk,omitzero"`
}

// DefaultPids is the default limit of processes and threads of a node. It is far above what an
// ordinary system uses, and low enough that no node exhausts the kernel's process table.
const DefaultPids = 8192

// MaxPids is the kernel's own limit (PID_MAX_LIMIT in linux/threads.h).
const MaxPids = 4 << 20

// A NIC is a node's interface on a network.
type NIC struct {
	Network string
	Address netip.Addr
	// Interface is the interface of the host that the node takes on an Exclusive network, or the
	// virtual function that a plan assigns to it. Other nodes do not need it (spec.NamesDigest).
	Interface string `json:"-"`
	// IPv6 are the addresses that the node may use as source, in addition to the link-local address
	// derived from its MAC. The node's user configures them inside the node.
	IPv6 []netip.Addr `json:"-"`
	// Moving are the addresses of services, which the node has while it holds the service. Services are
	// compared on their own (spec.NamesDigest).
	Moving []netip.Addr `json:"-"`
	// Traffic limits what passes through the interface.
	Traffic traffic.Limits `json:"-"`
}

// Requirements are pinned Python packages in pip's requirements file format, including comments.
type Requirements struct {
	File string // for messages
	Text string
}

// A Group is a named set of nodes.
type Group struct {
	Name  string
	Nodes []string // names of all its nodes, in order of id
	Batch Batch    // how many of its nodes the command up disturbs at once
	// Spread is SpreadOverHosts if placement distributes the nodes evenly, or "".
	Spread string         `json:",omitempty"`
	Vars   map[string]any `json:"-"` // free values for templates; see Site.VarsOf
	// Settings are those of the roles of its nodes; see package params.
	Settings Settings `json:"-"`
}

// SpreadOverHosts distributes the nodes of a group evenly over the hosts.
const SpreadOverHosts = "host"

// A Volume declares where a host stores the persistent data with that name.
type Volume struct {
	Name   string
	Path   string        `toml:"path"` // directory on the host, or "" for the host's state directory
	Remote               // alternative to Path
	Shared bool          `toml:"shared"` // one directory shared by all nodes, instead of one for each
	Mirror string        `toml:"mirror"` // target for copies by rsync(1) over SSH: user@host:/path, or ""
	Every  time.Duration `toml:"every"`
}

// A Secret declares the source of a secret. Exactly one of the source fields is set.
type Secret struct {
	Name     string
	File     string   `toml:"file"`
	Command  []string `toml:"command"`
	Generate int      `toml:"generate"` // number of characters to generate, or of bytes with some formats
	Format   string   `toml:"format"`   // of a generated value (secretspec.Formats), or "" for letters and digits
	Per      string   `toml:"per"`      // secretspec.PerNode, or "" if all nodes have the same value
	Readers  []string `toml:"readers"`  // the only roles that may read it, or none if every role may
}

// A Release is a numbered build of a set of nodes.
type Release struct {
	Number       int
	Requirements Requirements
	Image        string            `toml:"image"`
	Roles        map[string]string `toml:"roles"` // replacement roles, keyed by the role that nodes declare
	Notes        string            `toml:"notes"`
}

// A Test is a command that checks a whole site from inside one of its nodes (orrery ci).
type Test struct {
	Name    string
	Node    string        `toml:"node"`
	Command []string      `toml:"command"`
	User    string        `toml:"user" default:"root"`
	Timeout time.Duration `toml:"timeout" default:"1m"`
}

// A Role is a unit of functionality; see docs/roles.md.
type Role struct {
	Name        string
	Dir         string   // "roles/NAME", for messages
	Description string   `toml:"description"`
	Apt         []string `toml:"apt"`
	Pip         []string `toml:"pip"`
	Services    []string `toml:"services"` // systemd units that run whenever the node runs
	Active      []string // systemd units that run only on a live node, not in quarantine
	SimulatedBy string   `toml:"simulated_by"` // role that twins use instead, or ""
	// Changes lists paths, including everything below, that nodes may change without drift.
	Changes      []string `toml:"changes"`
	NeedsRoles   []string
	NeedsHealthy []string          // selectors
	Env          map[string]string `toml:"env"`
	Params       []Param           `toml:"param" json:",omitempty"`
	Files        []File
	Secrets      []SecretUse `toml:"secret"`
	Steps        []Step
	Volumes      []VolumeUse       `toml:"volume"`
	Health       []HealthCheck     `toml:"health"`
	Beside       map[string][]byte // all other files in the role's directory, by relative path
}

// A Param is a setting of a role. Sites set it for all nodes, for groups or for single nodes.
type Param struct {
	Name    string   `toml:"name"`
	Type    string   `toml:"type" default:"string"` // one of params.Types
	Default any      `toml:"default"`               // nil if the site must set it
	Doc     string   `toml:"doc"`
	Values  []string `toml:"values" json:",omitempty"` // the only strings that are allowed, or none
	Check   string   `toml:"check" json:",omitempty"`  // regular expression for the whole of a string
}

// Settings are values of parameters, by role and name, as the site file has them.
type Settings map[string]map[string]any

// Values of Step.When, the time at which a step runs.
const (
	Build   = "build"   // while the layer is built
	Boot    = "boot"    // on the node, before the services of its roles start
	Started = "started" // on the node, after the services of its roles started
	Active  = "active"  // on the node, each time it becomes live
)

// A File is a file that a role installs on the node.
type File struct {
	Line     int    // line in role.toml
	Path     string `toml:"path"`
	Owner    string `toml:"owner" default:"root:root"`
	Mode     uint32 `toml:"mode" default:"0644" unit:"mode"`
	Unsaid   bool   // the role does not declare the mode
	Template string // name of the template in the role's directory, or ""
	Source   string // name of the source file in the role's directory, or ""
	Content  []byte // content of Template or Source, or the inline content
	// Restarts are the services, of any role of the node, that restart when only this file has
	// changed. If it is nil, the services of the file's role and of the roles that need it restart.
	Restarts []string `toml:"restarts"`
}

// Rendered reports whether the file differs between nodes and so is not part of the layer.
func (f File) Rendered() bool { return f.Template != "" }

// ModeFor returns the mode of the file. A file that contains a secret is accessible only to its
// owner, unless the role declares a mode.
func (f File) ModeFor(secret bool) uint32 {
	if secret && f.Unsaid {
		return 0o600
	}
	return f.Mode
}

// A Step is a command of a role.
type Step struct {
	Line        int
	Name        string `toml:"name"`
	When        string `toml:"when"` // Build, Boot, Started or Active
	Run         string // name of the script in the role's directory, or "" if it is inline
	Script      []byte
	Interpreter []string      `toml:"interpreter"`
	User        string        `toml:"user" default:"root"`
	Timeout     time.Duration `toml:"timeout"`
}

// A SecretUse names a secret that a role needs.
type SecretUse struct {
	Line  int
	Name  string `toml:"name"`
	Owner string `toml:"owner" default:"root:root"`
	Mode  uint32 `toml:"mode" default:"0400" unit:"mode"`
}

// A VolumeUse names persistent data that a role keeps.
type VolumeUse struct {
	Line  int
	Name  string `toml:"name"`
	Path  string `toml:"path"`
	Owner string `toml:"owner" default:"root:root"`
	Mode  uint32 `toml:"mode" default:"0755" unit:"mode"`
	// Exclusive means that the nodes of two releases never use the volume at once. A quarantine
	// uses a copy instead.
	Exclusive  bool   `toml:"exclusive" default:"true"`
	Quarantine string `toml:"quarantine"` // initial content of the copy: Empty or Snapshot
	From       string `toml:"from"`       // initial content of the volume: "" for empty, or FromLayer
}

// FromLayer is the VolumeUse.From of a volume that begins with what the node's layers have at its path.
const FromLayer = "layer"

// Values of VolumeUse.Quarantine, the initial content of a volume's copy.
const (
	CopyEmpty    = "empty"
	CopySnapshot = "snapshot"
)
