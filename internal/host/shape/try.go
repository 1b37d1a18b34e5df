package shape

import (
	"github.com/vishvananda/netlink"

	"orrery/internal/site/traffic"
)

// Try makes a link with limits, and returns an error if the kernel cannot. The caller must be in a
// new network namespace.
func Try(l traffic.Limits) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "orvtrial"
	link := &netlink.Bridge{LinkAttrs: attrs}
	if err := netlink.LinkAdd(link); err != nil {
		return err
	}
	return Set(link, l)
}
