package check

import (
	"slices"

	"orrery/internal/site"
)

// checkXen checks settings that are only for Xen guests, and settings that these cannot have.
func checkXen(found *findings, n *site.Node) {
	if n.Engine != site.Xen {
		if n.Xen != (site.XenGuest{}) {
			found.report(atNode(n, "xen"), `write engine = "xen", or remove it`,
				"node %s is not a guest of Xen but has a guest type", n.Name)
		}
		return
	}
	if n.Xen.Type != "" && !slices.Contains(site.XenTypes, n.Xen.Type) {
		found.report(atNode(n, "xen", "type"), "use "+sentence(site.XenTypes), "type = %q is not a Xen guest type",
			n.Xen.Type)
	}
	other := n.VM.Fixed()
	other.Disk = ""
	if !other.IsZero() {
		found.report(atNode(n, "vm"), "remove all but vm.disks",
			"node %s is a guest of Xen, which determines its processors and devices", n.Name)
	}
	if n.VM.Disk != "" {
		found.report(atNode(n, "vm", "disk"),
			`write engine = "kvm", or add vm.disks and mount one by a role`,
			"node %s is a guest of Xen, which stores what it writes in files of its host", n.Name)
	}
	checkDiskSettingsOnXen(found, n, n.VM.DiskSettings, func(name string) []string { return atNode(n, "vm", name) })
	for i := range n.VM.Disks {
		checkDiskSettingsOnXen(found, n, n.VM.Disks[i].DiskSettings, func(name string) []string {
			return atNode(n, "vm", "disks", i, name)
		})
	}
}

// checkDiskSettingsOnXen checks that a Xen guest has no settings for the use of its disks, because Xen's
// toolstack does not support them.
func checkDiskSettingsOnXen(found *findings, n *site.Node, m site.DiskSettings, at func(string) []string) {
	for _, of := range []struct {
		key  string
		said bool
	}{{"cache", m.Cache != ""}, {"aio", m.AIO != ""}, {"read", m.Read != 0}, {"write", m.Write != 0},
		{"iops", m.IOPS != 0}} {
		if of.said {
			found.report(at(of.key), `remove it, or write engine = "kvm"`,
				"node %s is a guest of Xen, whose disks have no %s", n.Name, of.key)
		}
	}
}
