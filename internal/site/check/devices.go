package check

import (
	"slices"

	"orrery/internal/pattern"
	"orrery/internal/site"
)

// maxQueues is how many queues a network card may have: as many as guests make use of, for each of which the host has a thread.
const maxQueues = 64

// pciAddress is the whole address of a function: domain, bus, device and function, as /sys has them.
var pciAddress = pattern.New(`^[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]$`)

// devices checks what a virtual machine has of the host's hardware.
func (c *checker) devices(n *site.Node, key func(...any) []string) {
	v := &n.VM
	if v.Queues < 0 || v.Queues > maxQueues {
		c.wrong(key("vm", "queues"), "from 1 to 64; as many as it has processors is enough", "queues = %d is not possible", v.Queues)
	}
	if emulated := v.Model != "" && v.Model != site.Virtio; emulated && (v.Queues > 1 || v.VHost != nil && *v.VHost) {
		c.wrong(key("vm", "model"), `use "virtio", or take queues and vhost out`, "a network card %s has one queue, and is served by QEMU", v.Model)
	}
	if v.Pin != "" && v.Pin != site.PinEach {
		c.wrong(key("vm", "pin"), `use "each", or take it out`, "vm.pin = %q is not known", v.Pin)
	}
	if has := site.EachOf(n.Limits.Pin); v.Pin == site.PinEach && len(has) < n.Limits.VCPUs() {
		c.wrong(key("vm", "pin"), `name as many in pin, such as "0-3"`, "node %s has %d processors of its own, and is pinned to %d of the host's", n.Name, n.Limits.VCPUs(), len(has))
	}
	if v.Numa != nil && (*v.Numa < 0 || *v.Numa > 1023) {
		c.wrong(key("vm", "numa"), "lscpu lists them", "numa = %d is no node of a machine's memory", *v.Numa)
	}
	switch {
	case v.Hugepages == 0:
	case !slices.Contains(site.HugepageSizes, v.Hugepages):
		c.wrong(key("vm", "hugepages"), `use "2MiB" or "1GiB"`, "hugepages = %d bytes is no size of a page", v.Hugepages)
	case n.Limits.Memory%v.Hugepages != 0:
		c.wrong(key("memory"), "round it", "memory = %d MiB is no whole number of pages of %d MiB", n.Limits.Memory>>20, v.Hugepages>>20)
	}
	c.functions(n, key)
}

// functions checks those of the PCI bus. Each is one node's.
func (c *checker) functions(n *site.Node, key func(...any) []string) {
	for i, address := range n.VM.PCI {
		if !pciAddress().MatchString(address) {
			c.wrong(key("vm", "pci", i), `such as "0000:03:00.0"; lspci -D lists them`, "%q is no address of a PCI function", address)
			continue
		}
		on := function{n.Host, address}
		if other, taken := c.taken[on]; taken {
			c.wrong(key("vm", "pci", i), "take it out of one of them", "PCI function %s is already that of node %s", address, other)
			continue
		}
		c.taken[on] = n.Name
	}
	if len(n.VM.PCI) > 0 && len(c.site.Releases) > 0 {
		c.wrong(key("vm", "pci"), "take pci out, or the releases", "node %s has PCI functions, which its next release could not have beside it", n.Name)
	}
}

// function is one of the PCI bus of a host.
type function struct{ host, address string }
