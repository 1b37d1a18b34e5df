package check

import (
	"slices"

	"orrery/internal/site"
	"orrery/internal/text/pattern"
)

// maxQueues is the maximum number of queues of a network card. Guests do not use more, and the host
// has a thread for each queue.
const maxQueues = 64

// pciAddress matches the full address of a function: domain, bus, device and function, as in /sys.
var pciAddress = pattern.New(`^[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]$`)

// checkDevices checks the host hardware that a virtual machine uses.
func checkDevices(ix *index, found *findings, taken holders, n *site.Node) {
	v := &n.VM
	if v.Queues < 0 || v.Queues > maxQueues {
		found.report(atNode(n, "vm", "queues"), "1 to 64; no more than the node's processors are needed",
			"queues = %d is out of range", v.Queues)
	}
	if emulated := v.Model != "" && v.Model != site.Virtio; emulated && (v.Queues > 1 || v.VHost != nil && *v.VHost) {
		found.report(atNode(n, "vm", "model"), `use "virtio", or remove queues and vhost`,
			"network card %s has one queue and cannot use vhost", v.Model)
	}
	if v.Pin != "" && v.Pin != site.PinPerCPU {
		found.report(atNode(n, "vm", "pin"), `use "each", or remove it`, "vm.pin = %q is unknown", v.Pin)
	}
	if pinned := site.ListProcessors(n.Limits.Pin); v.Pin == site.PinPerCPU && len(pinned) < n.Limits.VCPUs() {
		found.report(atNode(n, "vm", "pin"), `list one host processor for each in pin, such as "0-3"`,
			"node %s has %d processors but is pinned to %d of the host's", n.Name, n.Limits.VCPUs(), len(pinned))
	}
	if v.Numa != nil && (*v.Numa < 0 || *v.Numa > 1023) {
		found.report(atNode(n, "vm", "numa"), "lscpu lists the NUMA nodes", "numa = %d is not a NUMA node", *v.Numa)
	}
	switch {
	case v.Hugepages == 0:
	case !slices.Contains(site.HugepageSizes, v.Hugepages):
		found.report(atNode(n, "vm", "hugepages"), `use "2MiB" or "1GiB"`, "hugepages = %d bytes is not a page size",
			v.Hugepages)
	case n.Limits.Memory%v.Hugepages != 0:
		found.report(atNode(n, "memory"), "round it", "memory = %d MiB is not a multiple of the page size, %d MiB",
			n.Limits.Memory>>20, v.Hugepages>>20)
	}
	checkFunctions(ix, found, taken, n)
}

// checkFunctions checks the PCI functions of a node. Only one node may use a function.
func checkFunctions(ix *index, found *findings, taken holders, n *site.Node) {
	for i, address := range n.VM.PCI {
		if !pciAddress().MatchString(address) {
			found.report(atNode(n, "vm", "pci", i), `such as "0000:03:00.0"; lspci -D lists them`,
				"%q is not the address of a PCI function", address)
			continue
		}
		if other := taken.claim(n, address); other != nil {
			found.report(atNode(n, "vm", "pci", i), "remove it from one of them",
				"PCI function %s is already used by node %s",
				address, other.Name)
		}
	}
	if len(n.VM.PCI) > 0 && len(ix.Releases) > 0 {
		found.report(atNode(n, "vm", "pci"), "remove pci or the releases",
			"node %s has PCI functions, which two releases cannot use at the same time", n.Name)
	}
}

// holders are the nodes that use devices of hosts, by host and device. Only one node may use a
// device.
type holders map[[2]string]*site.Node

// claim returns the node that already uses a device, or nil after it recorded n as its user.
func (h holders) claim(n *site.Node, device string) (other *site.Node) {
	on := [2]string{n.Host, device}
	if other = h[on]; other == nil {
		h[on] = n
	}
	return other
}
