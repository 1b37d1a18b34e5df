// Package observe has the state of a site that hosts report, in the same terms as its declaration.
package observe

import (
	"slices"
	"time"

	"orrery/internal/observe/sriov"
	"orrery/internal/site/spec"
)

// A State is the state of a node.
type State string

// The states of a node.
const (
	Stopped State = "stopped"
	Running State = "running"
	Frozen  State = "frozen"
	Broken  State = "broken" // partly created or removed, by a process that was killed
)

// A Host is everything of one site that exists on a host.
type Host struct {
	Name string `json:"name"`
	// Unknown means that the host did not answer or was left out. It may nevertheless have nodes.
	Unknown bool `json:"unknown,omitempty"`
	Cpus    int  `json:"cpus"`
	// Online has the processors in the kernel's format, such as "0-3,8", or "" if unknown.
	Online   string          `json:"online,omitempty"`
	Memory   int64           `json:"memory"` // bytes
	Networks []Network       `json:"networks"`
	Nodes    []Node          `json:"nodes"`
	Layers   map[string]bool `json:"layers"` // digests of the layers in the host's store
	Names    string          `json:"names"`  // digest of what nodes know of one another
	// HostNames is the digest of the nodes' names in the hosts file of the host
	// (inventory.HostNamesDigest), or "" if it must have none.
	HostNames string            `json:"host_names,omitempty"`
	Settings  map[string]string `json:"settings"`
	Volumes   []Volume          `json:"volumes"`
	Releases  Releases          `json:"releases"`
	// Secrets has the generations of the secrets that the host stores, by stored name (secretspec.Split).
	Secrets map[string]int `json:"secrets,omitempty"`

	Engines map[string]Capabilities `json:"engines"`

	// Lacks has the features that were asked for and that the kernel lacks, such as feature.Rate.
	Lacks map[string]Missing `json:"lacks,omitempty"`

	Hugepages []Hugepages   `json:"hugepages,omitempty"`
	Numa      []Numa        `json:"numa,omitempty"`
	Functions []PCIFunction `json:"functions,omitempty"`
	Cards     []sriov.Card  `json:"cards,omitempty"` // network cards with virtual functions

	Addresses []Address      `json:"addresses,omitempty"`
	Key       string         `json:"key,omitempty"` // public key of its encrypted networks, or "" if not requested
	Around    HostNetworking `json:"around,omitzero"`

	Disk    *Disk  `json:"disk,omitempty"`    // file system of the nodes, or nil if not requested
	Drained *Drain `json:"drained,omitempty"` // set if the host must get no more nodes of the site, or nil

	Origin string `json:"origin,omitempty"` // id of the site that owns the nodes there, or "" if not recorded
	// Boot is the digest of what the host does on its own after a reboot. It is "" if that is
	// nothing or cannot be read.
	Boot string `json:"boot,omitempty"`

	OutgoingMoves []OutgoingMove `json:"given,omitempty"`    // nodes that are no longer in Nodes
	IncomingMoves []IncomingMove `json:"arrivals,omitempty"` // nodes that are not yet in Nodes

	Restoring *RestoreProgress `json:"restoring,omitempty"` // nil if no restore is in progress
}

// A Disk is a file system of a host, in bytes.
type Disk struct {
	Total int64 `json:"total"`
	Free  int64 `json:"free"`
}

// A Drain marks a host that nodes of a site must leave.
type Drain struct {
	Who   string    `json:"who"`
	Since time.Time `json:"since"`
}

// StableState returns the hosts without values that change all the time. Two results are equal if no
// operation happened in between.
func StableState(hosts []Host) []Host {
	all := slices.Clone(hosts)
	for i := range all {
		all[i].Disk, all[i].Around = nil, HostNetworking{}
		all[i].Nodes = slices.Clone(all[i].Nodes)
		for j := range all[i].Nodes { // anyone may probe nodes at any time
			all[i].Nodes[j].Sick, all[i].Nodes[j].ProbedAt = nil, time.Time{}
		}
	}
	return all
}

// Capabilities are optional features of an engine.
type Capabilities struct {
	Containers bool `json:"containers"`  // nodes share the host's kernel
	LiveLimits bool `json:"live_limits"` // the limits of a running node can be changed
	MoveNIC    bool `json:"move_nic"`    // an interface of a running node can be moved to another bridge
	Remount    bool `json:"remount"`     // the volumes of a running node can be changed
	PlugDisk   bool `json:"plug_disk"`   // disks can be added to a running node and removed
	PlugNIC    bool `json:"plug_nic"`    // interfaces can be added and removed
	Keep       bool `json:"keep"`        // a node that was replaced can be restored
	Move       bool `json:"move"`        // a node can move to another host

	// Models are the processor models of its virtual machines, or none if not requested.
	Models []string `json:"models,omitempty"`
	// Accel is KVM, Xen or TCG for an engine with virtual machines, or "".
	Accel string `json:"accel,omitempty"`
	// Pool is the memory that its virtual machines use instead of the host's. It is nil if there is
	// none, or if not requested.
	Pool   *MemoryPool `json:"pool,omitempty"`
	Unable Missing     `json:"unable,omitzero"` // why the engine can run no node on this host, or the zero Missing
	// Stuck is the reason why a running virtual machine cannot move to other programs on this host,
	// or the zero Missing.
	Stuck Missing `json:"stuck,omitzero"`
}

// Values of Capabilities.Accel: what runs virtual machines.
const (
	KVM = "kvm" // the processor itself
	Xen = "xen" // the processor itself, controlled by Xen
	TCG = "tcg" // QEMU, which emulates a processor and is many times slower
)

// A Missing is something that a host lacks, with the cure.
type Missing struct {
	What string `json:"what"`
	Cure string `json:"cure"`
}

// A HealthFailure is the reason why a node was found to be unhealthy.
type HealthFailure struct {
	At    time.Time `json:"at"`
	Found string    `json:"found"`
	// Proven is the time of the last successful proof before the node was found to be unhealthy. A
	// different proof is newer, whatever the clock says.
	Proven time.Time `json:"proven,omitzero"`
}

// A StepFailure is why a step of a run failed on a node.
type StepFailure struct {
	Step  string    `json:"step"` // kind of the step, such as configure or check
	At    time.Time `json:"at"`
	Found string    `json:"found"`
}

// A Node is a node as it exists on its host.
type Node struct {
	spec.Node
	State      State     `json:"state"`
	Configured bool      `json:"configured"`         // its roles have been applied completely
	Proven     string    `json:"proven"`             // digest of the health checks that it last passed
	ProvenAt   time.Time `json:"proven_at,omitzero"` // time of that success
	// Sick is the reason why the node was unhealthy at the last inspection, if that is newer than
	// ProvenAt.
	Sick *HealthFailure `json:"sick,omitempty"`
	// ProbedAt is the time of the last inspection, if that is newer than ProvenAt. Sick has its result.
	ProbedAt time.Time `json:"probed_at,omitzero"`
	// Failed is why the node is not configured or not proven, or nil if that was not tried.
	Failed *StepFailure `json:"failed,omitempty"`
	Active bool         `json:"active"`          // what runs only on live nodes has run on it, or may have
	Accel  string       `json:"accel,omitempty"` // what runs it, for a running virtual machine
	VHost  bool         `json:"vhost,omitempty"` // the host's kernel serves its network cards, and not QEMU
	// Starved means that the node is frozen because its host had no space for its disk writes.
	Starved bool `json:"starved,omitempty"`
	// Panic has the last output of its kernel if the node is frozen because of a kernel panic.
	Panic string `json:"panic,omitempty"`
	// Rootless means that the node runs without the program that serves its root file system. It
	// may still write to its disks.
	Rootless bool `json:"rootless,omitempty"`
	// Outdated lists programs that run the node and were replaced on the host after it was started.
	Outdated []string `json:"outdated,omitempty"`
	// Unlinked lists networks to which the running node has no link, because someone deleted it.
	Unlinked []string `json:"unlinked,omitempty"`
	// Doubt lists networks for which it is unknown whether the node has the interface, because a
	// process that plugged or unplugged it was killed.
	Doubt []string `json:"doubt,omitempty"`
	// Resume means that the node was stopped for a move, and must be started again wherever it is.
	Resume bool    `json:"resume,omitempty"`
	Drift  []Drift `json:"drift,omitempty"` // differences from its desired state, if inspected
	// Shortages lists what it has little left of, if inspected.
	Shortages []Shortage `json:"shortages,omitempty"`
}

// Runs reports whether the node is running or frozen, so that it has its links and mounts.
func (n *Node) Runs() bool { return n.State == Running || n.State == Frozen }

// RestartReason returns the reason why a running node is useless until it is restarted, or "".
func (n *Node) RestartReason() string {
	switch {
	case n.Panic != "":
		return "its kernel has panicked"
	case n.Rootless:
		return "the process that serves its root has ended"
	}
	return ""
}

// A Volume is persistent data that is stored with a host's state.
type Volume struct {
	Name string `json:"name"`
	Node string `json:"node,omitempty"` // "" if all nodes share it
	Path string `json:"path"`
}

// Network returns the network of a site, or of its quarantine, with a name, or false.
func (h *Host) Network(siteKey, name string) (*Network, bool) {
	for i := range h.Networks {
		if n := &h.Networks[i]; n.Site == siteKey && n.Name == name {
			return n, true
		}
	}
	return nil, false
}

// NodeByID returns the node with an id, or false.
func (h *Host) NodeByID(id int) (*Node, bool) {
	for i := range h.Nodes {
		if h.Nodes[i].ID == id {
			return &h.Nodes[i], true
		}
	}
	return nil, false
}

// Node returns a node by name, or false.
func (h *Host) Node(name string) (*Node, bool) {
	for i := range h.Nodes {
		if h.Nodes[i].Name == name {
			return &h.Nodes[i], true
		}
	}
	return nil, false
}
