package network

import (
	"github.com/vishvananda/netlink"

	"orrery/internal/network/ends"
	"orrery/internal/network/kind"
	"orrery/internal/plan/clash"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// checkConflicts returns an error if a network must not be made on this host: the name of its bridge is
// taken, or its subnet is in use. Networks of the same site are not compared. The site has been
// checked, and two of its networks may be about to change places.
func checkConflicts(n spec.Network, all []bridge) error {
	if err := checkName(n); err != nil {
		return err
	}
	k := kind.Of(n.Kind)
	if err := k.CheckHost(n, markedNetworks(all)); err != nil || !k.HasNodes() {
		return err
	}
	if err := checkNoUsers(n, all); err != nil || n.HostAddress() == "" {
		return err
	}
	around, err := around(n.Site, all)
	if err != nil {
		return networkError(n, "read the host's networks", err)
	}
	if p := clash.SubnetOverlap(&n, &around); p != nil {
		return p
	}
	// Programs that listen and the host's addresses are not checked again, as in plans: after a
	// reboot, a network must come back whatever else has started before it.
	if p := clash.PublishedElsewhere(&n, around.Networks); p != nil {
		return p
	}
	return nil
}

func checkName(n spec.Network) error {
	link, err := netlink.LinkByName(n.Bridge)
	if ends.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return networkError(n, "read "+n.Bridge, err)
	}
	if b, ok := ownBridge(link); ok && (!b.marked || b.mark.Site == n.Site && b.mark.Name == n.Name) {
		return nil
	}
	return clash.NameTaken(&n)
}

// markedNetworks returns the networks that have a marked link on this host.
func markedNetworks(all []bridge) []spec.Network {
	var networks []spec.Network
	for _, b := range all {
		if b.marked {
			networks = append(networks, b.mark)
		}
	}
	return networks
}

// checkNoUsers returns an error if a network's link must not be replaced by another type, because
// nodes are on it.
func checkNoUsers(n spec.Network, all []bridge) error {
	for _, b := range all {
		if b.link.Attrs().Name != n.Bridge || !b.marked || b.mark.Kind == n.Kind {
			continue
		}
		users, err := kind.Of(b.mark.Kind).Users(b.mark, b.ports)
		if err != nil {
			return networkError(n, "list the host's links", err)
		}
		if users > 0 {
			return problem.New(problem.Unable, "network %s: its kind cannot change to %s while nodes are on it", n.Name,
				site.KindOf(n.Kind).Name).
				Try("stop its nodes")
		}
	}
	return nil
}
