package network

import (
	"errors"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"orrery/internal/network/ends"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// linkPrefix begins the names of the host's ends of all links to nodes (site.VethName).
const linkPrefix = "orv"

// RemoveLinks removes the host's ends of links to nodes, and with them the nodes' ends. One that is not there is no error.
func RemoveLinks(names []string) error {
	for _, name := range names {
		if !strings.HasPrefix(name, linkPrefix) && !site.IsRouted(name) {
			return problem.New(problem.Failed, "%s is not the link of a node", name)
		}
		if err := removeLink(name); err != nil {
			return problem.New(problem.Failed, "remove link %s", name).Because(err)
		}
	}
	return nil
}

// removeLink removes a link, if it is there.
func removeLink(name string) error {
	link, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkDel(link)
	}
	if err != nil && !ends.Missing(err) && !gone(err) {
		return err
	}
	return nil
}

// gone reports whether an error says that a link went while we were about it, as one does when its node's end goes.
func gone(err error) bool { return errors.Is(err, unix.ENODEV) }
