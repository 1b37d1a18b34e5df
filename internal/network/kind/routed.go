package kind

import (
	"os"
	"strings"

	"github.com/vishvananda/netlink"

	"orrery/internal/network/ends"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

type routed struct{ bridge }

func (routed) Check(n spec.Network) error {
	if n.Gateway == "" {
		return problem.New(problem.Unable, "network %s: a routed network needs a gateway", n.Name)
	}
	return nil
}

// Users counts the host's ends of the network's links, which are on no bridge.
func (routed) Users(n spec.Network, _ int) (int, error) {
	links, err := ends.ListConsistent(netlink.LinkList)
	users := 0
	for _, link := range links {
		if name := link.Attrs().Name; site.IsRoutedLink(name) && strings.HasPrefix(name, site.RoutedPrefix(n.Site, n.Name)) {
			users++
		}
	}
	return users, err
}

func (routed) Attach(nic spec.NIC, inner string, space *os.File) error {
	return ends.MakePair(nic, site.Routed, inner, space)
}
