package site

import (
	"math"
	"reflect"
)

// The engines, by their names in site files.
const (
	LXC = "lxc" // containers
	KVM = "kvm" // virtual machines
	Xen = "xen" // guests of Xen
)

// Engines are the names of the supported engines. The first is the default. A test compares them
// with package engine/all.
var Engines = []string{LXC, KVM, Xen}

// A VM has the settings of a virtual machine. An empty field means a default that suits the host.
type VM struct {
	CPU string `toml:"cpu" json:"cpu,omitempty"` // processor model, as QEMU names it
	// Model is the model of the network cards: one of NICModels, or "" for Virtio.
	Model string `toml:"model" json:"model,omitempty"`

	// Queues is the number of queues of each network card. 0 means 1.
	Queues int `toml:"queues" json:"queues,omitempty"`
	// VHost is whether the host's kernel serves the network cards, instead of QEMU. If it is nil,
	// the kernel serves them where possible.
	VHost *bool `toml:"vhost" json:"vhost,omitempty"`
	// Pin is PinPerCPU, or "" if the processors share those that the node is pinned to.
	Pin string `toml:"pin" json:"pin,omitempty"`
	// Numa is the NUMA node of the host that provides the memory, or nil for any.
	Numa *int `toml:"numa" json:"numa,omitempty"`
	// Hugepages is the page size of the memory, or 0 for ordinary pages.
	Hugepages int64 `toml:"hugepages" unit:"size" json:"hugepages,omitempty"`
	// PCI lists the addresses of the host's PCI functions that are passed through.
	PCI []string `toml:"pci" json:"pci,omitempty"`

	// Disk stores what the machine writes: QCow2, RawFile or the path of a device. If it is "",
	// files on the host store it.
	Disk  string  `toml:"disk" json:"disk,omitempty"`
	Size  int64   `toml:"size" unit:"size" json:"size,omitempty"` // bytes of Disk
	Disks []Drive `toml:"disks" json:"disks,omitempty"`           // additional disks
	DiskSettings
}

// IsZero reports whether the node declares no machine settings.
func (v VM) IsZero() bool { return reflect.ValueOf(v).IsZero() }

// PinPerCPU pins each processor of a virtual machine to one processor of the host.
const PinPerCPU = "each"

// HugepageSizes are the huge page sizes that processors support.
var HugepageSizes = []int64{2 << 20, 1 << 30}

// The models of network cards that a virtual machine can have.
const (
	Virtio  = "virtio"
	E1000   = "e1000"
	RTL8139 = "rtl8139"
)

// NICModels lists all models.
var NICModels = []string{Virtio, E1000, RTL8139}

// Memory of virtual machines, which they do not share: the default, and the minimum that a guest
// needs to boot.
const (
	DefaultVMMemory = 512 << 20
	MinVMMemory     = 128 << 20
)

// BootsKernel reports whether the nodes of an engine boot their own kernel. Other nodes use the
// host's kernel.
func BootsKernel(engine string) bool { return engine == KVM || engine == Xen }

// Virtual reports whether the node is a virtual machine.
func (n *Node) Virtual() bool { return BootsKernel(n.Engine) }

// VCPUs returns the number of processors that a virtual machine with these limits shows to its
// guest. It is the limit rounded up, or 1 if there is no limit.
func (l Limits) VCPUs() int { return max(1, int(math.Ceil(l.Cpus))) }
