package lxc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"orrery/internal/engine/nodedir"
	"orrery/internal/network"
	"orrery/internal/network/ends"
	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// writeNIC writes the configuration of an interface (lxc.container.conf(5), NETWORK).
func (c container) writeNIC(set func(string, string, ...any), i int, n *spec.Node, nic spec.NIC) error {
	net := fmt.Sprintf("lxc.net.%d.", i)
	kind := n.KindOf(nic)
	switch kind {
	case site.Macvlan:
		set(net+"type", "macvlan")
		set(net+"macvlan.mode", "bridge")
		set(net+"link", "%s", nic.Parent)
	case site.Exclusive:
		set(net+"type", "phys")
		set(net+"link", "%s", nic.Parent)
	case site.Routed:
		set(net+"type", "veth")
		set(net+"script.up", "%s", c.laying(nic))
	default:
		set(net+"type", "veth")
		set(net+"link", "%s", nic.Bridge)
	}
	set(net+"name", "%s", nic.Name)
	if kind == site.Routed || kind == site.Bridge {
		set(net+"veth.pair", "%s", nic.HostEnd)
	}
	if kind != site.Exclusive { // that has one of its own
		set(net+"hwaddr", "%s", nic.MAC)
	}
	set(net+"mtu", "%d", nic.MTU)
	set(net+"ipv4.address", "%s", nic.Address)
	if nic.Gateway != "" {
		set(net+"ipv4.gateway", "%s", nic.Gateway)
	}
	set(net+"flags", "up")
	if refusesRouters(kind) {
		set("lxc.sysctl.net.ipv6.conf."+nic.Name+".accept_ra", "0")
	}
	if kind == site.Routed {
		return c.writeLaying(nic)
	}
	return nil
}

// refusesRouters reports whether a node is told not to believe router advertisements on a network of a kind. On networks that
// are a wire of the host's, there may be a router that is right.
func refusesRouters(kind string) bool {
	if kind != site.Bridge && kind != site.Routed {
		return false
	}
	_, err := os.Stat("/proc/sys/net/ipv6") // else LXC would not start the node
	return err == nil
}

// laying is a script that LXC runs on the host whenever it has made the link of a routed network, which it does also when the node
// reboots by itself.
func (c container) laying(nic spec.NIC) string { return c.File("up-" + nic.Name) }

func (c container) writeLaying(nic spec.NIC) error {
	if err := os.WriteFile(c.laying(nic), ends.LayingScript(nic), 0o700); err != nil {
		return err
	}
	return os.Chmod(c.laying(nic), 0o700) //nolint:gosec // a script that root runs
}

// taker says of interfaces of the host which node has taken them.
func (c container) taker() string { return c.ref.Site + "/" + strconv.Itoa(c.ref.ID) }

// passThrough prepares the interfaces that the node takes when it starts.
func (c container) passThrough(ctx context.Context, r *nodedir.Record) error {
	for _, nic := range r.NICs {
		if !r.Takes(nic) {
			continue
		}
		if err := network.PassThrough(ctx, nic.Parent, c.taker()); err != nil {
			return errors.Join(err, c.giveBack(ctx, r))
		}
	}
	return nil
}

// giveBack makes interfaces of the host that the node had what they were before. LXC has moved them back, or the kernel has; a veth pair that was
// all in nodes that were killed is gone.
func (c container) giveBack(ctx context.Context, r *nodedir.Record) error {
	ctx = context.WithoutCancel(ctx)
	var err error
	for _, nic := range r.NICs {
		if nic.Kind == site.Exclusive { // even if it is on a bridge now
			err = errors.Join(err, network.Reclaim(ctx, nic.Parent, c.taker()))
		}
	}
	return err
}

// observeLinks notes where the links of a running node really are.
func (c container) observeLinks(n *observe.Node) {
	var inside map[string]bool
	for i := range n.NICs {
		nic := &n.NICs[i]
		switch n.KindOf(*nic) {
		case site.Macvlan, site.Exclusive:
			if inside == nil {
				inside = interfaces(c.init())
			}
			if !inside[nic.Name] {
				nic.Bridge = ""
			}
		default:
			nic.Bridge = ends.Whereabouts(*nic, n.KindOf(*nic))
		}
	}
}

// interfaces gives the names of the network interfaces that a process has (proc_pid_net(5)).
func interfaces(pid int) map[string]bool {
	all := map[string]bool{}
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/dev", pid))
	for line := range strings.Lines(string(text)) {
		if name, _, ok := strings.Cut(line, ":"); ok {
			all[strings.TrimSpace(name)] = true
		}
	}
	return all
}
