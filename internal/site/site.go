package site

import (
	"net/netip"
	"strings"
	"time"
)

// A Site is all that is declared.
type Site struct {
	Name     string `toml:"name"`
	ID       string `toml:"id"` // tells it from other sites of that name, on any host; "": nothing does
	Twin     string // name of the twin that this is; "": the site itself
	Original *Site  // of which it is a twin: what is known there is not misspelt here, although it may be left out
	Stage    int    // number of the release of which this is the quarantine; 0: none
	Owner    string `toml:"owner"`
	// people who may change it without being root: names of users and, behind "@", of their groups
	Owners     []string `toml:"owners"`
	Twins      TwinRules
	Production bool           `toml:"production"` // destructive verbs ask for the site's name
	Vars       map[string]any `toml:"vars"`       // free values for templates

	Hosts     []Host
	Networks  []Network
	VethPairs []VethPair
	Images    []Image
	Nodes     []Node // in order of id
	Groups    []Group
	Volumes   []Volume
	Secrets   []Secret
	Releases  []Release
	Roles     []Role
	Tests     []Test
	Hooks     []Hook
	Mirror    Mirror
}

// Key is what a host keeps the site under, as apart from what its nodes call it: twins have the
// same names and addresses, but directories, control groups, bridges and tables of their own.
func (s *Site) Key() string {
	if s.Twin == "" {
		return s.Name
	}
	return s.Name + "." + s.Twin
}

// TwinRules say what twins may be made of a site by people who are not root.
type TwinRules struct {
	Members []string      `toml:"members"`               // who may; as Owners
	Most    int           `toml:"most" default:"1"`      // twins that one of them has at a time
	Expires time.Duration `toml:"expires" default:"24h"` // after which a twin ends at the latest
	NAT     bool          `toml:"nat"`                   // its nodes may reach the outside
	Data    bool          `toml:"data"`                  // its volumes may begin with the site's data
}

// Events are what hooks can be told of.
const (
	TrialEnded   = "trial-ended"
	SwitchFailed = "switch-failed"
	MirrorFailed = "mirror-failed"
	BackupDone   = "backup-done"
)

// Events lists them all.
var Events = []string{TrialEnded, SwitchFailed, MirrorFailed, BackupDone}

// A Hook is who is told when something happens to the site: a program of the host, or a server.
type Hook struct {
	Name    string
	On      []string      `toml:"on"`                    // of Events
	Command []string      `toml:"command"`               // that gets the event as its input
	User    string        `toml:"user" default:"nobody"` // of the host, as whom it is run
	URL     string        `toml:"url"`                   // to which the event is posted, instead of Command
	Timeout time.Duration `toml:"timeout" default:"10s"`
}

// A Host is a machine that runs nodes.
type Host struct {
	Name    string
	Address string  `toml:"address" default:"local"` // "local", or user@address reached over SSH
	Cpus    float64 `toml:"cpus"`                    // processors; 0: asked of the host
	Memory  int64   `toml:"memory" unit:"size"`      // bytes; 0: asked of the host
	// Oversubscribe is how many times its processors are given to nodes that have no host of their own; 0: once.
	Oversubscribe float64 `toml:"oversubscribe" json:",omitzero"`
	// Underlay is by which of its addresses the other hosts reach it with what nodes send; the zero
	// Addr: that of Address or, if that is none, the one on a subnet with others.
	Underlay netip.Addr `toml:"underlay" json:",omitzero"`
}

// Local reports whether the host is the machine on which Orrery runs.
func (h Host) Local() bool { return h.Address == "" || h.Address == "local" }

// Reached returns the address by which other hosts reach it, as far as the site says so; else the zero one.
func (h Host) Reached() netip.Addr {
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

// A Network is what gives nodes their addresses: a segment of layer 2 or, if it is Routed, of layer 3.
type Network struct {
	Name    string
	Subnet  netip.Prefix `toml:"subnet"`
	Gateway netip.Addr   `toml:"gateway"` // address of the host; the zero Addr: no way out
	NAT     bool         `toml:"nat"`     // masquerade what leaves through the gateway
	// what of the host its nodes may use (ParseOpenings), besides asking its gateway whether it is
	// there
	Host     []string `toml:"host"`
	Spoof    bool     `toml:"spoof"`    // its nodes may send as others than themselves
	Metadata bool     `toml:"metadata"` // with NAT, its nodes reach what the host has at link-local addresses
	// Protocols are those that its nodes may send besides IP and ARP (ParseProtocols).
	Protocols []string `toml:"protocols"`
	Encrypt   bool     `toml:"encrypt"` // what goes between hosts is encrypted
	// bytes; 0: 1500, or less if its nodes are on several hosts and what joins those takes less
	MTU  int    `toml:"mtu"`
	Kind string `toml:"kind"` // one of Kinds; "": Bridge
	// Interface is that of the host on which a Macvlan network is, or by whose VLAN a Bridge is joined
	// with a wire.
	Interface string `toml:"interface"`
	VLAN      int    `toml:"vlan"`   // number of that VLAN; 0: none
	Bridge    string `toml:"bridge"` // a bridge that the host has, with which the network's own is joined
	// Isolated: of a twin. Nodes have the gateway as ever, but the host does not answer there, because
	// it does so for the original; only with NAT does a way lead out.
	Isolated bool
}

// Wired reports whether a network that is live is on what hosts have: a wire joins it then, and
// whoever else is on that.
func (n *Network) Wired() bool {
	return KindOf(n.Kind).Wired() || n.Uplinked()
}

// Uplinked reports whether the bridges of the network are joined with something that the hosts have.
func (n *Network) Uplinked() bool { return n.VLAN != 0 || n.Bridge != "" }

// An Image is what a node's root file system starts from.
type Image struct {
	Name string
	// Distribution is that of which it is; "": that which has the suite.
	Distribution string   `toml:"distribution" json:",omitempty"`
	Suite        string   `toml:"suite"`      // from which it is built
	Components   []string `toml:"components"` // of the suite; none: main
	Packages     []string `toml:"packages"`   // besides those that every node needs
	// absolute path of a root file system tarball, OCI archive, OCI layout or disk image, instead of
	// Suite
	Import string `toml:"import"`
	From   string // where that is read, if it is in the copy of a site directory that a release keeps; else empty
	// of the imported file, so that a new file is a new image: size and time of change, or see
	// ContentStamp
	Stamp string
	// another host says what is imported: no file of this machine is meant, whatever Import says
	Told bool `json:"-"`
	// Of a disk image; see Image.Disk.
	Firmware string `toml:"firmware" json:",omitempty"`
	Guest    string `toml:"guest" json:",omitempty"`
	Login    string `toml:"login" json:",omitempty"`
	Bus      string `toml:"bus" json:",omitempty"`
}

// A Mirror says where packages come from; empty fields mean: where the host gets its own.
type Mirror struct {
	Apt      string   `toml:"apt"`
	Security string   `toml:"security"`
	PyPI     string   `toml:"pypi"`
	Proxy    string   `toml:"proxy"`
	Hosts    []string `toml:"hosts" json:",omitempty"` // HOST or HOST:PORT, which builds may reach besides
	CA       []byte   // PEM
	Key      []byte   `json:",omitempty"` // that Apt and Security are signed with, armoured; nil: that of the distribution
}

// A Node is a logical machine.
type Node struct {
	Name         string
	ID           int
	Release      int // that it is of; 0: none
	Image        string
	Roles        []string // as declared; Site.RolesOf adds those that they need
	Groups       []string // all groups that it is in, sorted
	Host         string   // "": not placed
	Engine       string
	Privileged   bool
	Syscalls     []string // of NodeSyscalls, that its programs may use; sorted
	Autostart    bool
	Limits       Limits
	VM           VM // of a virtual machine; see Virtual
	Xen          XenGuest
	NICs         []NIC // the first is the primary one
	Vars         map[string]any
	Requirements Requirements
	SimulatedBy  string   // role that a twin gives the node instead of its own; "": none
	StandsFor    []string // roles in whose place its simulator is, in a twin: it is found by them as if it had them
	Aliases      []string // names of nodes for which it stands in a collapsed twin
}

// NodeSyscalls are the system calls that containers are refused unless they name them.
var NodeSyscalls = []string{IOUring, Socketcall}

// System calls that a container can ask for: io_uring, by which programs get sockets and more past
// any filter of calls, and the call by which 32-bit programs get sockets of all kinds.
const (
	IOUring    = "io_uring"
	Socketcall = "socketcall"
)

// FullID is the number of the node on its host: its id, behind the number of its release if it is
// of one. So 101 of release 700 is 700101, as the containers of KAT-7 were numbered.
func (n *Node) FullID() int { return FullID(n.Release, n.ID) }

// Networks returns the names of the networks that the node is on, in order.
func (n *Node) Networks() []string {
	names := make([]string, len(n.NICs))
	for i, nic := range n.NICs {
		names[i] = nic.Network
	}
	return names
}

// Limits bound what a node may use. Zero values mean: no limit.
type Limits struct {
	Cpus float64 `toml:"cpus" json:"cpus,omitempty"` // processors
	// processors it may run on, as in "0-3,8" (cpuset(7))
	Pin    string `toml:"pin" json:"pin,omitempty"`
	Memory int64  `toml:"memory" unit:"size" json:"memory,omitempty"` // bytes
	Swap   *int64 `toml:"swap" unit:"size" json:"swap,omitempty"`     // bytes; nil: as much as there is
	Pids   int    `toml:"pids" json:"pids,omitempty"`                 // processes and threads
}

// DefaultPids is how many processes and threads a node may have if nothing is said: many more than
// any ordinary system has, and few enough that no node takes all that the kernel has for its host.
const DefaultPids = 8192

// MaxPids is how many the kernel can count (PID_MAX_LIMIT of linux/threads.h).
const MaxPids = 4 << 20

// A NIC is a node's place on a network.
type NIC struct {
	Network string
	Address netip.Addr
	// Interface is that of the host which the node takes on an Exclusive network. No other node need
	// know of it (spec.Names).
	Interface string `json:"-"`
	// IPv6 are addresses from which the node may send besides the link-local one that follows from its
	// MAC. Whoever runs the node configures them.
	IPv6 []netip.Addr `json:"-"`
}

// Requirements are pinned Python packages: pip's requirements file format, comments and all.
type Requirements struct {
	File string // for messages
	Text string
}

// A Group is a named set of nodes.
type Group struct {
	Name  string
	Nodes []string // names of all nodes in it, in order of id
	Batch Batch    // so many of them Up disturbs at once
	// Spread is over what they are placed as evenly as may be: OverHosts, or "".
	Spread string `json:",omitempty"`
}

// OverHosts spreads the nodes of a group over hosts.
const OverHosts = "host"

// A Volume says where the persistent data of that name is kept.
type Volume struct {
	Name   string
	Path   string        `toml:"path"` // directory of the host; "": with the host's state
	Remote               // instead of Path
	Shared bool          `toml:"shared"` // one directory for all nodes, instead of one for each
	Mirror string        `toml:"mirror"` // where it is copied to by rsync(1) over SSH: user@host:/path; "": nowhere
	Every  time.Duration `toml:"every"`
}

// A Secret says where a secret comes from; one of the fields is set.
type Secret struct {
	Name     string
	File     string   `toml:"file"`
	Command  []string `toml:"command"`
	Generate int      `toml:"generate"` // characters
}

// A Release is a numbered build of a set of nodes.
type Release struct {
	Number       int
	Requirements Requirements
	Image        string            `toml:"image"`
	Roles        map[string]string `toml:"roles"` // role that is used instead, by the name of the one that nodes declare
	Notes        string            `toml:"notes"`
}

// A Test is a command that proves a whole site from inside one of its nodes (orrery ci).
type Test struct {
	Name    string
	Node    string        `toml:"node"`
	Command []string      `toml:"command"`
	User    string        `toml:"user" default:"root"`
	Timeout time.Duration `toml:"timeout" default:"1m"`
}

// A Role is a unit of functionality; see docs/roles.md.
type Role struct {
	Name         string
	Dir          string   // for messages: "roles/NAME"
	Description  string   `toml:"description"`
	Apt          []string `toml:"apt"`
	Pip          []string `toml:"pip"`
	Services     []string `toml:"services"` // systemd units that run wherever the node does
	Active       []string // systemd units that run only on a node that is live, not in quarantine
	SimulatedBy  string   `toml:"simulated_by"` // role that twins have instead; "": none
	Changes      []string `toml:"changes"`      // paths, with all below them, that nodes change by themselves: no drift
	NeedsRoles   []string
	NeedsHealthy []string          // selectors
	Env          map[string]string `toml:"env"`
	Files        []File
	Secrets      []SecretUse `toml:"secret"`
	Steps        []Step
	Volumes      []VolumeUse       `toml:"volume"`
	Health       []HealthCheck     `toml:"health"`
	Beside       map[string][]byte // every other file of the role's directory, by its path in it
}

// When a step of a role is done.
const (
	Build   = "build"   // into the layer
	Boot    = "boot"    // on the node, before the services of its roles start
	Started = "started" // on the node, once they have started
	Active  = "active"  // on the node, each time that it becomes live
)

// A File is put on the node by a role.
type File struct {
	Line     int    // in role.toml
	Path     string `toml:"path"`
	Owner    string `toml:"owner" default:"root:root"`
	Mode     uint32 `toml:"mode" default:"0644" unit:"mode"`
	Unsaid   bool   // the role does not say the mode
	Template string // name, beside role.toml, of the template it is rendered from
	Source   string // name, beside role.toml, of the file it is
	Content  []byte // of Template, Source, or as given
	// Restarts are the services that restart when nothing but this file has changed, of whatever role of the node,
	// or nil: those of its role and of the roles that need it.
	Restarts []string `toml:"restarts"`
}

// Rendered reports whether the file differs from node to node and so is not part of the layer.
func (f File) Rendered() bool { return f.Template != "" }

// ModeFor returns the mode of the file. One that has the value of a secret in it is its owner's
// alone, unless the role says otherwise.
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
	Run         string // name, beside role.toml, of the script; "": given inline
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
	// Exclusive: never used by the nodes of two releases at once. In quarantine there is a copy instead.
	Exclusive  bool   `toml:"exclusive" default:"true"`
	Quarantine string `toml:"quarantine"` // Empty or Snapshot: what the copy begins with
}

// What the copy of a volume begins with.
const (
	Empty    = "empty"
	Snapshot = "snapshot"
)

// A HealthCheck says when a node is healthy. One of TCP, HTTP and Command is set.
type HealthCheck struct {
	Line     int
	TCP      int           `toml:"tcp"`
	HTTP     string        `toml:"http"`
	Command  []string      `toml:"command"`
	Timeout  time.Duration `toml:"timeout" default:"5s"`     // of one try
	Interval time.Duration `toml:"interval" default:"500ms"` // between tries
	Within   time.Duration `toml:"within" default:"1m"`      // until which it must have succeeded once
}
