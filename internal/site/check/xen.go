package check

import (
	"slices"

	"orrery/internal/site"
)

// xen checks what only guests of Xen can have, and what they cannot.
func (c *checker) xen(n *site.Node, key func(...any) []string) {
	if n.Engine != site.Xen {
		if n.Xen != (site.XenGuest{}) {
			c.wrong(key("xen"), `write engine = "xen", or take it out`, "node %s is no guest of Xen, and says of which type it is", n.Name)
		}
		return
	}
	if n.Xen.Type != "" && !slices.Contains(site.XenTypes, n.Xen.Type) {
		c.wrong(key("xen", "type"), "use "+sentence(site.XenTypes), "type = %q is no type of a guest of Xen", n.Xen.Type)
	}
	other := n.VM.Fixed()
	other.Disk = ""
	if !other.IsZero() {
		c.wrong(key("vm"), "take all out but vm.disks", "node %s is a guest of Xen, whose processors and devices are Xen's own", n.Name)
	}
	if n.VM.Disk != "" {
		c.wrong(key("vm", "disk"), `write engine = "kvm"; or give it vm.disks, and let a role mount one where much is written`,
			"node %s is a guest of Xen, and keeps what it writes in files of its host", n.Name)
	}
	c.mannerOnXen(n, n.VM.Manner, func(name string) []string { return key("vm", name) })
	for i := range n.VM.Disks {
		c.mannerOnXen(n, n.VM.Disks[i].Manner, func(name string) []string { return key("vm", "disks", i, name) })
	}
}

// mannerOnXen checks that nothing is said of how a guest of Xen uses its disks: its toolstack has no words for that.
func (c *checker) mannerOnXen(n *site.Node, m site.Manner, at func(string) []string) {
	for _, of := range []struct {
		key  string
		said bool
	}{{"cache", m.Cache != ""}, {"aio", m.AIO != ""}, {"read", m.Read != 0}, {"write", m.Write != 0}, {"iops", m.IOPS != 0}} {
		if of.said {
			c.wrong(at(of.key), `take it out, or write engine = "kvm"`, "node %s is a guest of Xen, whose disks have no %s", n.Name, of.key)
		}
	}
}
