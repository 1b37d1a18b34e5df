// Package network makes the networks of sites on a host. Each network has one link, usually a
// bridge (see package kind). Each site has one nftables table that masquerades and isolates
// networks and sites from one another.
//
// Observe returns the networks of a site that exist. Make creates a network or changes it to match
// its spec, rules first. Remove removes it. Guard, called before nodes start, restricts their ports
// to their own addresses. For a switch, MoveLinks moves the links of all its nodes at once. Sweep
// removes what killed runs left.
//
// The kernel is the only record. Each link has a mark in its alias (ip-link(8)) that records what
// it was made for. Everything else is read from the kernel, so a manual change shows as a
// difference from the declaration. The package never touches anything without Orrery's mark.
package network

import (
	"context"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"

	"orrery/internal/host"
	"orrery/internal/network/ends"
	"orrery/internal/network/kind"
	"orrery/internal/network/vxlan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// Make makes a network, or changes an existing one to match its spec. If it is killed at any
// moment, the next call completes the work. It may be called for several networks at the same time.
// nodes returns the ports of the site's nodes on this host, which Make needs for ports that are not
// guarded.
func Make(ctx context.Context, n spec.Network, nodes func() ([]Port, error)) error {
	if err := check(n); err != nil {
		return err
	}
	unlock, err := lock(ctx, host.Exclusive)
	if err != nil {
		return err
	}
	defer unlock()
	all, err := bridges()
	if err != nil {
		return err
	}
	if err := checkConflicts(n, all); err != nil {
		return err
	}
	if err := removeUnmarked(all, n.Bridge); err != nil {
		return networkError(n, "remove incomplete bridges", err)
	}
	if !n.Router {
		if err := removeRouter(n); err != nil {
			return networkError(n, "remove its router", err)
		}
	}
	if err := replaceEnds(n, all); err != nil {
		return networkError(n, "remove its former ends", err)
	}
	// The rules are written before the link is up, so that the network is never open without them.
	link, err := openLink(n)
	if err != nil {
		return networkError(n, "create link "+n.Bridge, err)
	}
	others, before, err := otherNetworks(all, n)
	if err != nil {
		return err
	}
	k := kind.Of(n.Kind)
	if k.HasNodes() {
		others = append(others, n)
	}
	if err := writeTable(n.Site, others); err != nil {
		return err
	}
	if err := forgetFlows(before, n); err != nil {
		return err
	}
	if err := k.Make(n); err != nil {
		return err
	}
	if err := setUpLink(n, link); err != nil {
		return networkError(n, "set up link "+n.Bridge, err)
	}
	if err := vxlan.Make(n, link); err != nil {
		return networkError(n, "join it with other hosts", err)
	}
	if n.Router {
		if err := makeRouter(n, link); err != nil {
			return networkError(n, "create its router", err)
		}
	}
	return updatePorts(n, nodes)
}

// replaceEnds removes a veth pair that has other ends than desired.
func replaceEnds(n spec.Network, all []bridge) error {
	for _, b := range all {
		if b.marked && b.mark.Bridge == n.Bridge && b.mark.Ends != n.Ends {
			if err := kind.Of(b.mark.Kind).Remove(b.mark); err != nil {
				return err
			}
		}
	}
	return nil
}

// Remove removes a network, and with the last network of a site the site's table. It does nothing
// if the network does not exist.
func Remove(ctx context.Context, n spec.Network) error {
	unlock, err := lock(ctx, host.Exclusive)
	if err != nil {
		return err
	}
	defer unlock()
	all, err := bridges()
	if err != nil {
		return err
	}
	// The link is removed last, because it shows that there is something to remove. It is set down
	// before its rules are removed.
	if err := setDownLink(n.Bridge); err != nil {
		return networkError(n, "set link "+n.Bridge+" down", err)
	}
	for _, b := range all {
		if b.marked && b.mark.Bridge == n.Bridge {
			if err := kind.Of(b.mark.Kind).Remove(b.mark); err != nil {
				return networkError(n, "remove its ends", err)
			}
		}
	}
	if err := removeRouter(n); err != nil {
		return networkError(n, "remove its router", err)
	}
	if err := vxlan.Remove(n); err != nil {
		return networkError(n, "disconnect it from other hosts", err)
	}
	others, before, err := otherNetworks(all, n)
	if err != nil {
		return err
	}
	if err := writeTable(n.Site, others); err != nil {
		return err
	}
	if err := forgetFlows(before, spec.Network{}); err != nil {
		return err
	}
	if err := removeMarked(n.Bridge); err != nil {
		return networkError(n, "remove link "+n.Bridge, err)
	}
	if err := removeUnmarked(all, n.Bridge); err != nil {
		return networkError(n, "remove incomplete bridges", err)
	}
	if slices.ContainsFunc(all, func(b bridge) bool { return b.marked && b.mark.Bridge != n.Bridge }) {
		return nil
	}
	return removePortTable()
}

// Sweep removes bridges that a run made and could not mark because it was killed. Make and Remove
// also do this. Sweep is for hosts without a network to make or remove.
func Sweep(ctx context.Context) error {
	unlock, err := lock(ctx, host.Exclusive)
	if err != nil {
		return err
	}
	defer unlock()
	all, err := bridges()
	if err != nil {
		return err
	}
	return removeUnmarked(all, "")
}

// check returns an error if no network can be made from the spec, before anything is changed.
func check(n spec.Network) error {
	k := kind.Of(n.Kind)
	if err := k.Check(n); err != nil || !k.HasNodes() {
		return err
	}
	if n.Router && !site.KindOf(n.Kind).Bridged {
		return problem.New(problem.Unable, "network %s: only a bridge can have a router", n.Name)
	}
	if err := vxlan.Check(n); err != nil {
		return err
	}
	subnet, err := netip.ParsePrefix(n.Subnet)
	if err != nil || !subnet.Addr().Is4() {
		return problem.New(problem.Unable, "network %s: %q is not an IPv4 subnet", n.Name, n.Subnet).Because(err)
	}
	if _, err := openPorts(n); err != nil {
		return problem.New(problem.Unable, "network %s: the host ports that it opens cannot be parsed", n.Name).Because(err)
	}
	if _, err := site.ParseProtocols(splitComma(n.Protocols)); err != nil {
		return problem.New(problem.Unable, "network %s: the protocols that it allows cannot be parsed", n.Name).Because(err)
	}
	if n.Router && n.Gateway == "" {
		return problem.New(problem.Unable, "network %s: a router needs a gateway", n.Name)
	}
	if err := checkPublished(n, subnet); err != nil {
		return err
	}
	if n.Gateway == "" {
		if n.Answers != "" {
			return problem.New(problem.Unable, "network %s: active services need a gateway", n.Name)
		}
		return nil
	}
	gateway, err := netip.ParsePrefix(n.Gateway)
	if err != nil || !subnet.Contains(gateway.Addr()) {
		return problem.New(problem.Unable, "network %s: gateway %q is not in %s", n.Name, n.Gateway, n.Subnet).Because(err)
	}
	return checkAnswers(n, subnet)
}

// readVXLANs returns how the networks of this host are joined with other hosts.
func readVXLANs() (*vxlan.State, error) {
	links, err := ends.ListConsistent(netlink.LinkList)
	if err != nil {
		return nil, problem.New(problem.Failed, "list the host's links").Because(err)
	}
	return vxlan.ReadState(links)
}

// otherNetworks returns the networks of a network's site without itself, and the network itself as
// it is before a change.
func otherNetworks(all []bridge, n spec.Network) (others []spec.Network, before spec.Network, err error) {
	joints, err := readVXLANs()
	if err != nil {
		return nil, before, err
	}
	_, ports, err := readTable(siteTable(n.Site))
	if err != nil {
		return nil, before, err
	}
	before.Publish = ports[n.Name]
	for _, o := range siteNetworks(all, n.Site, joints, ports) {
		if o.Name == n.Name {
			before = o
		} else {
			others = append(others, o)
		}
	}
	return others, before, nil
}

// siteNetworks returns the networks of a site as their marks describe them, each with its current
// connection to other hosts, and with the ports that its table publishes.
func siteNetworks(all []bridge, ofSite string, joints *vxlan.State, published map[string]string) []spec.Network {
	var networks []spec.Network
	for _, b := range all {
		if b.marked && b.mark.Site == ofSite && kind.Of(b.mark.Kind).HasNodes() {
			n := joints.WithOverlay(b.mark)
			n.Publish = published[n.Name]
			networks = append(networks, n)
		}
	}
	return networks
}

func networkError(n spec.Network, what string, err error) error {
	return problem.New(problem.Failed, "network %s: %s", n.Name, what).Because(err)
}
