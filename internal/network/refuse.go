package network

import (
	"github.com/vishvananda/netlink"

	"orrery/internal/network/ends"
	"orrery/internal/plan/clash"
	"orrery/internal/site/spec"
)

// refuse says why a network must not be made on this host: its bridge's name is taken, or its subnet leads elsewhere.
// Networks of the same site are left out: the site has been checked, and two of them may be about to change places.
func refuse(n spec.Network, all []bridge) error {
	if err := refuseName(n); err != nil {
		return err
	}
	if n.Kind == spec.VethPair {
		return refuseVethPair(n)
	}
	if err := refuseKind(n, all); err != nil {
		return err
	}
	if err := refuseUsers(n, all); err != nil || n.HostAddress() == "" {
		return err
	}
	around, err := around(n.Site, all)
	if err != nil {
		return failed(n, "look at what else the host has", err)
	}
	if p := clash.Subnet(&n, &around); p != nil {
		return p
	}
	return nil
}

func refuseName(n spec.Network) error {
	link, err := netlink.LinkByName(n.Bridge)
	if ends.Missing(err) {
		return nil
	}
	if err != nil {
		return failed(n, "look at "+n.Bridge, err)
	}
	if b, ok := ours(link); ok && (!b.marked || b.mark.Site == n.Site && b.mark.Name == n.Name) {
		return nil
	}
	return clash.Named(&n)
}
