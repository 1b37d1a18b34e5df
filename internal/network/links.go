package network

import (
	"errors"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"orrery/internal/problem"
)

// linkPrefix begins the names of the host's ends of all links to nodes (site.VethName).
const linkPrefix = "orv"

// Links gives the names of the host's ends of links to nodes that are on the networks of a site; of all such ends,
// also those on no network, if the site is "". One without a running node is left from a run that was killed.
func Links(site string) ([]string, error) {
	links, err := whole(netlink.LinkList)
	if err != nil {
		return nil, problem.New(problem.Failed, "list the host's links").Because(err)
	}
	on := map[int]bool{}
	for _, link := range links {
		if b, ok := ours(link); ok && b.marked && b.mark.Site == site {
			on[link.Attrs().Index] = true
		}
	}
	var names []string
	for _, link := range links {
		attrs := link.Attrs()
		if strings.HasPrefix(attrs.Name, linkPrefix) && (site == "" || on[attrs.MasterIndex]) {
			names = append(names, attrs.Name)
		}
	}
	return names, nil
}

// RemoveLinks removes the host's ends of links to nodes, and with them the nodes' ends. One that is not there is no error.
func RemoveLinks(names []string) error {
	for _, name := range names {
		if !strings.HasPrefix(name, linkPrefix) {
			return problem.New(problem.Failed, "%s is not the link of a node", name)
		}
		link, err := netlink.LinkByName(name)
		if err == nil {
			err = netlink.LinkDel(link)
		}
		if err != nil && !missing(err) && !gone(err) {
			return problem.New(problem.Failed, "remove link %s", name).Because(err)
		}
	}
	return nil
}

// gone reports whether an error says that a link went while we were about it, as one does when its node's end goes.
func gone(err error) bool { return errors.Is(err, unix.ENODEV) }
