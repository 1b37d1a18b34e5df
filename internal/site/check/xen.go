package check

import (
	"slices"

	"orrery/internal/site"
)

// checkXen checks settings that are only for Xen guests, and settings that these cannot have.
func checkXen(found *findings, n *site.Node) {
	if n.Engine != site.Xen {
		if n.Xen != (site.XenGuest{}) {
			found.report(atNode(n, "xen"), `write engine = "xen", or take it out`,
				"node %s is no guest of Xen, and says of which type it is", n.Name)
		}
		return
	}
	if n.Xen.Type != "" && !slices.Contains(site.XenTypes, n.Xen.Type) {
		found.report(atNode(n, "xen", "type"), "use "+sentence(site.XenTypes), "type = %q is no type of a guest of Xen",
			n.Xen.Type)
	}
	other := n.VM.Fixed()
	other.Disk = ""
	if !other.IsZero() {
		found.report(atNode(n, "vm"), "take all out but vm.disks",
			"node %s is a guest of Xen, whose processors and devices are Xen's own", n.Name)
	}
	if n.VM.Disk != "" {
		found.report(atNode(n, "vm", "disk"),
			`write engine = "kvm"; or give it vm.disks, and let a role mount one where much is written`,
			"node %s is a guest of Xen, and keeps what it writes in files of its host", n.Name)
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
			found.report(at(of.key), `take it out, or write engine = "kvm"`,
				"node %s is a guest of Xen, whose disks have no %s", n.Name, of.key)
		}
	}
}
