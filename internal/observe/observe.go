// Package observe holds what hosts report of a site: in the same terms as what is declared.
package observe

import (
	"slices"
	"time"

	"orrery/internal/site/spec"
)

// A State is what a node is doing.
type State string

// The states of a node.
const (
	Stopped State = "stopped"
	Running State = "running"
	Frozen  State = "frozen"
	Broken  State = "broken" // half made or half removed, by a run that was killed
)

// A Host is what is on a host of one site's doing.
type Host struct {
	Name string `json:"name"`
	// nothing is known of it: it does not answer, or was left out; that is not to say that nothing is
	// there
	Unknown  bool              `json:"unknown,omitempty"`
	Cpus     int               `json:"cpus"`
	Online   string            `json:"online,omitempty"` // processors, as the kernel lists them: "0-3,8"; "": not known
	Memory   int64             `json:"memory"`           // bytes
	Networks []Network         `json:"networks"`
	Nodes    []Node            `json:"nodes"`
	Layers   map[string]bool   `json:"layers"` // digests of the layers in the host's store
	Names    string            `json:"names"`  // digest of what nodes know of one another
	Settings map[string]string `json:"settings"`
	Volumes  []Volume          `json:"volumes"`
	Releases Releases          `json:"releases"`

	Engines map[string]Capabilities `json:"engines"`

	Hugepages []Hugepages `json:"hugepages,omitempty"`
	Numa      []Numa      `json:"numa,omitempty"`
	Functions []Function  `json:"functions,omitempty"`

	Addresses []Address `json:"addresses,omitempty"`
	Key       string    `json:"key,omitempty"` // public, of its encrypted networks; "": nobody has asked
	Around    Around    `json:"around,omitzero"`

	Disk    *Disk  `json:"disk,omitempty"`    // where nodes are kept; nil: nobody has looked
	Drained *Drain `json:"drained,omitempty"` // no node of the site comes to it any more; nil: they may

	Origin string `json:"origin,omitempty"` // the id of the site whose nodes are there; "": that is not on record
	// digest of what the host does by itself after a reboot; "": nothing, or nobody can read it
	Boot string `json:"boot,omitempty"`

	Given    []Given   `json:"given,omitempty"`    // nodes that are not among Nodes any more,
	Arrivals []Arrival `json:"arrivals,omitempty"` // and such as are not among them yet

	Restoring *Restoring `json:"restoring,omitempty"` // nil: nothing of it is being restored
}

// A Disk is a file system of a host, in bytes.
type Disk struct {
	Total int64 `json:"total"`
	Free  int64 `json:"free"`
}

// A Drain is the mark on a host that nodes of a site are to leave.
type Drain struct {
	Who   string    `json:"who"`
	Since time.Time `json:"since"`
}

// Lasting returns hosts without the values that change all the time: two results are equal if no operation
// came in between.
func Lasting(hosts []Host) []Host {
	all := slices.Clone(hosts)
	for i := range all {
		all[i].Disk, all[i].Around = nil, Around{}
	}
	return all
}

// Capabilities are what an engine can do beyond what all of them do.
type Capabilities struct {
	Containers bool `json:"containers"`  // nodes share the host's kernel
	LiveLimits bool `json:"live_limits"` // the limits of a running node can be changed
	MoveNIC    bool `json:"move_nic"`    // an interface of a running node can be moved to another bridge
	Remount    bool `json:"remount"`     // the volumes that a running node sees can be changed
	PlugDisk   bool `json:"plug_disk"`   // a disk can come to a running node and leave it
	PlugNIC    bool `json:"plug_nic"`    // an interface can
	Keep       bool `json:"keep"`        // a node that is replaced can come back
	Move       bool `json:"move"`        // a node can go to another host

	Models []string `json:"models,omitempty"` // of processors that its virtual machines can have; none: nobody has asked
	// what runs the engine's virtual machines: KVM or TCG; "": its nodes are none
	Accel string `json:"accel,omitempty"`
	// of memory, that its virtual machines have in place of the host's; nil: there is none, or nobody
	// has asked
	Pool   *Pool `json:"pool,omitempty"`
	Unable Lack  `json:"unable,omitzero"` // why the engine can run no node on this host; the zero Lack: it can
	// why a virtual machine that runs cannot go on in other programs of this host; the zero Lack: it
	// can
	Stuck Lack `json:"stuck,omitzero"`
}

// What runs virtual machines.
const (
	KVM = "kvm" // the processor itself
	Xen = "xen" // the processor itself, by Xen
	TCG = "tcg" // QEMU, which emulates one and is many times as slow
)

// A Lack is something that a host does not have, and the cure.
type Lack struct {
	What string `json:"what"`
	Cure string `json:"cure"`
}

// A Sickness is why a node was found not to be healthy.
type Sickness struct {
	At    time.Time `json:"at"`
	Found string    `json:"found"`
	// when its health had been proven last: another proof is newer, whatever the clock says
	Proven time.Time `json:"proven,omitzero"`
}

// A Node is a node as its host has it.
type Node struct {
	spec.Node
	State      State     `json:"state"`
	Configured bool      `json:"configured"`         // its roles have been applied in full
	Proven     string    `json:"proven"`             // digest of the health checks that it last passed,
	ProvenAt   time.Time `json:"proven_at,omitzero"` // and when that was
	// why it was not healthy when it was last looked into, if that is newer
	Sick   *Sickness `json:"sick,omitempty"`
	Active bool      `json:"active"`          // what only a live node does has been done on it, or may have been
	Accel  string    `json:"accel,omitempty"` // what runs it, if it is a virtual machine that runs
	VHost  bool      `json:"vhost,omitempty"` // its network cards are served by the host's kernel, and not by QEMU
	// it is frozen because its host had no room for what it wrote to a disk
	Starved bool `json:"starved,omitempty"`
	// it is frozen because its kernel has panicked: what that printed at last
	Panic string `json:"panic,omitempty"`
	// it runs without what shows it its root, and may still write to its disks
	Rootless bool `json:"rootless,omitempty"`
	// programs that run it and have been replaced on the host since it was started
	Outdated []string `json:"outdated,omitempty"`
	// networks to which it has no link any more although it runs: somebody deleted it
	Unlinked []string `json:"unlinked,omitempty"`
	// networks of which nobody knows whether it has the interface: a run that plugged or unplugged it
	// was killed
	Doubt  []string `json:"doubt,omitempty"`
	Resume bool     `json:"resume,omitempty"` // it was stopped to be moved, and is to run again wherever it is
	Drift  []Drift  `json:"drift,omitempty"`  // what is no longer as it was made, if somebody looked
}

// Runs reports whether the node does not stand still: it has its links and its mounts.
func (n *Node) Runs() bool { return n.State == Running || n.State == Frozen }

// Ruined says why a node that runs is of no use before it is started anew; "": it is of use.
func (n *Node) Ruined() string {
	switch {
	case n.Panic != "":
		return "its kernel has panicked"
	case n.Rootless:
		return "what shows it its root has ended"
	}
	return ""
}

// A Volume is persistent data kept with a host's state.
type Volume struct {
	Name string `json:"name"`
	Node string `json:"node,omitempty"` // "": shared by all
	Path string `json:"path"`
}

// Has returns the node with an id, and whether the host has it.
func (h *Host) Has(id int) (*Node, bool) {
	for i := range h.Nodes {
		if h.Nodes[i].ID == id {
			return &h.Nodes[i], true
		}
	}
	return nil, false
}

// Node returns a node by name.
func (h *Host) Node(name string) (*Node, bool) {
	for i := range h.Nodes {
		if h.Nodes[i].Name == name {
			return &h.Nodes[i], true
		}
	}
	return nil, false
}
