package check

import (
	"slices"

	"orrery/internal/site"
	"orrery/internal/site/device"
)

// checkContainerDevices checks the devices of the host that a container uses. Package device checks
// how they are written.
func checkContainerDevices(ix *index, found *findings, taken holders, n *site.Node) {
	switch {
	case len(n.Devices) == 0:
		return
	case n.Virtual():
		found.report(atNode(n, "devices"), "name disks in vm.disks, and PCI functions in vm.pci",
			"node %s is a virtual machine, which has no device files of its host", n.Name)
		return
	case len(n.Devices) > device.Max:
		found.report(atNode(n, "devices"), `name a class, such as "block:8:*"`, "node %s has %d devices; the maximum is %d",
			n.Name, len(n.Devices), device.Max)
		return
	}
	for i, d := range n.Devices {
		if slices.ContainsFunc(n.Devices[:i], func(o device.Device) bool { return o.Path == d.Path }) {
			found.report(atNode(n, "devices", i), "remove one", "node %s has device %s twice", n.Name, d.Path)
			continue
		}
		other := taken.claim(n, d.Path)
		shares := func(o device.Device) bool { return o.Path == d.Path && o.Shared && d.Shared }
		if other != nil && !slices.ContainsFunc(other.Devices, shares) {
			found.report(atNode(n, "devices", i), "remove it from one of them, or write shared = true for both",
				"device %s is already used by node %s", d.Path, other.Name)
		}
		if !d.Shared && len(ix.Releases) > 0 {
			found.report(atNode(n, "devices", i), "remove it or the releases, or write shared = true",
				"node %s has device %s, which two releases cannot use at the same time", n.Name, d.Path)
		}
	}
}
