package network

import (
	"net"

	"github.com/vishvananda/netlink"

	"orrery/internal/network/ends"
	"orrery/internal/observe"
	"orrery/internal/problem"
)

// Addresses returns the addresses by which other machines may reach this host, with their
// interfaces. Addresses of Orrery's own interfaces are left out.
func Addresses() ([]observe.Address, error) {
	links, err := ends.ListConsistent(netlink.LinkList)
	if err != nil {
		return nil, problem.New(problem.Failed, "list the host's links").Because(err)
	}
	addresses, err := ends.ListConsistent(func() ([]netlink.Addr, error) {
		return netlink.AddrList(nil, netlink.FAMILY_ALL)
	})
	if err != nil {
		return nil, problem.New(problem.Failed, "list the host's addresses").Because(err)
	}
	var all []observe.Address
	for _, link := range links {
		attrs := link.Attrs()
		if ends.IsOwn(attrs.Name) || attrs.Flags&net.FlagLoopback != 0 {
			continue
		}
		for _, a := range addresses {
			if a.LinkIndex == attrs.Index && a.IP.IsGlobalUnicast() {
				all = append(all, observe.Address{Prefix: a.IPNet.String(), Link: attrs.Name, MTU: attrs.MTU})
			}
		}
	}
	return all, nil
}
