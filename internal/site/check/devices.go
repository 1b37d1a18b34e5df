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
		found.report(atNode(n, "vm", "queues"), "from 1 to 64; as many as it has processors is enough",
			"queues = %d is not possible", v.Queues)
	}
	if emulated := v.Model != "" && v.Model != site.Virtio; emulated && (v.Queues > 1 || v.VHost != nil && *v.VHost) {
		found.report(atNode(n, "vm", "model"), `use "virtio", or take queues and vhost out`,
			"a network card %s has one queue, and is served by QEMU", v.Model)
	}
	if v.Pin != "" && v.Pin != site.PinPerCPU {
		found.report(atNode(n, "vm", "pin"), `use "each", or take it out`, "vm.pin = %q is not known", v.Pin)
	}
	if pinned := site.ListProcessors(n.Limits.Pin); v.Pin == site.PinPerCPU && len(pinned) < n.Limits.VCPUs() {
		found.report(atNode(n, "vm", "pin"), `name as many in pin, such as "0-3"`,
			"node %s has %d processors of its own, and is pinned to %d of the host's", n.Name, n.Limits.VCPUs(), len(pinned))
	}
	if v.Numa != nil && (*v.Numa < 0 || *v.Numa > 1023) {
		found.report(atNode(n, "vm", "numa"), "lscpu lists them", "numa = %d is no node of a machine's memory", *v.Numa)
	}
	switch {
	case v.Hugepages == 0:
	case !slices.Contains(site.HugepageSizes, v.Hugepages):
		found.report(atNode(n, "vm", "hugepages"), `use "2MiB" or "1GiB"`, "hugepages = %d bytes is no size of a page",
			v.Hugepages)
	case n.Limits.Memory%v.Hugepages != 0:
		found.report(atNode(n, "memory"), "round it", "memory = %d MiB is no whole number of pages of %d MiB",
			n.Limits.Memory>>20, v.Hugepages>>20)
	}
	checkFunctions(ix, found, taken, n)
}

// checkFunctions checks the PCI functions of a node. Only one node may use a function.
func checkFunctions(ix *index, found *findings, taken holders, n *site.Node) {
	for i, address := range n.VM.PCI {
		if !pciAddress().MatchString(address) {
			found.report(atNode(n, "vm", "pci", i), `such as "0000:03:00.0"; lspci -D lists them`,
				"%q is no address of a PCI function", address)
			continue
		}
		if other := taken.claim(n, address); other != nil {
			found.report(atNode(n, "vm", "pci", i), "take it out of one of them", "PCI function %s is already that of node %s",
				address, other.Name)
		}
	}
	if len(n.VM.PCI) > 0 && len(ix.Releases) > 0 {
		found.report(atNode(n, "vm", "pci"), "take pci out, or the releases",
			"node %s has PCI functions, which its next release could not have beside it", n.Name)
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
