package site

import (
	"math"
	"reflect"
)

// The engines, by the names that a site file has for them.
const (
	LXC = "lxc" // containers
	KVM = "kvm" // virtual machines
	Xen = "xen" // guests of Xen
)

// Engines are the names of the engines that this version has, that of nodes which name none first;
// a test holds them against package engine/all.
var Engines = []string{LXC, KVM, Xen}

// A VM is what a virtual machine shows to its guest. Empty fields mean: what suits the host.
type VM struct {
	CPU   string `toml:"cpu" json:"cpu,omitempty"`     // model of the processors, as QEMU names it
	Model string `toml:"model" json:"model,omitempty"` // of the network cards: one of CardModels; "": Virtio

	// by which each network card sends and receives at once; 0: one
	Queues int `toml:"queues" json:"queues,omitempty"`
	// the host's kernel serves them, rather than QEMU; nil: where it can
	VHost *bool `toml:"vhost" json:"vhost,omitempty"`
	// PinEach; "": its processors share those that the node is pinned to
	Pin string `toml:"pin" json:"pin,omitempty"`
	// node of the host's memory that it is on; nil: any
	Numa *int `toml:"numa" json:"numa,omitempty"`
	// size of the pages that its memory is in; 0: ordinary ones
	Hugepages int64 `toml:"hugepages" unit:"size" json:"hugepages,omitempty"`
	// addresses of functions of the host's that it gets to itself
	PCI []string `toml:"pci" json:"pci,omitempty"`

	// on which it keeps what it writes: QCow2, RawFile or the path of a device; "": in files of the
	// host
	Disk  string  `toml:"disk" json:"disk,omitempty"`
	Size  int64   `toml:"size" unit:"size" json:"size,omitempty"` // bytes of that
	Disks []Drive `toml:"disks" json:"disks,omitempty"`           // others
	Manner
}

// IsZero reports whether a node says nothing of its machine.
func (v VM) IsZero() bool { return reflect.ValueOf(v).IsZero() }

// PinEach pins each processor of a virtual machine to one of the host's.
const PinEach = "each"

// HugepageSizes are those that processors have.
var HugepageSizes = []int64{2 << 20, 1 << 30}

// The models of network cards that a virtual machine can have.
const (
	Virtio  = "virtio"
	E1000   = "e1000"
	RTL8139 = "rtl8139"
)

// CardModels are all of them.
var CardModels = []string{Virtio, E1000, RTL8139}

// Memory of virtual machines, which have it all to themselves: what one has that says nothing, and
// the least on which a guest boots.
const (
	DefaultVMMemory = 512 << 20
	MinVMMemory     = 128 << 20
)

// BootsKernel reports whether the nodes of an engine boot a kernel of their own; those of others
// run on the host's.
func BootsKernel(engine string) bool { return engine == KVM || engine == Xen }

// Virtual reports whether the node is a virtual machine.
func (n *Node) Virtual() bool { return BootsKernel(n.Engine) }

// VCPUs is how many processors a virtual machine with these limits shows to its guest: its share of
// the host's, rounded up; one, if that has no limit.
func (l Limits) VCPUs() int { return max(1, int(math.Ceil(l.Cpus))) }
