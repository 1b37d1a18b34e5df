package ends

import "github.com/vishvananda/netlink"

// SetUp takes a link of the host up or down.
func SetUp(name string, up bool) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	if up {
		return netlink.LinkSetUp(link)
	}
	return netlink.LinkSetDown(link)
}
