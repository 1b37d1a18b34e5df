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
	if !n.VM.IsZero() {
		c.wrong(key("vm"), "take it out", "node %s is a guest of Xen, whose processors and devices are Xen's own", n.Name)
	}
}
