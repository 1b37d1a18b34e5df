package lxc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/network"
	"orrery/internal/network/ends"
	"orrery/internal/network/kind"
	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// inner is what an interface of the node is called where LXC takes it from.
func inner(i int, n *spec.Node, nic spec.NIC) string {
	if n.Takes(nic) {
		return nic.Parent
	}
	return fmt.Sprintf("in%d", i)
}

// writeNIC writes the configuration of an interface (lxc.container.conf(5), NETWORK). LXC finds it beside its monitor, moves
// it into the node, and moves it back when the node ends or reboots by itself.
func (c container) writeNIC(set func(string, string, ...any), i int, n *spec.Node, nic spec.NIC) error {
	net := fmt.Sprintf("lxc.net.%d.", i)
	set(net+"type", "phys")
	set(net+"link", "%s", inner(i, n, nic))
	set(net+"name", "%s", nic.Name)
	takes := n.Takes(nic)
	if !takes { // that has one of its own
		set(net+"hwaddr", "%s", nic.MAC)
	}
	set(net+"mtu", "%d", nic.MTU)
	set(net+"ipv4.address", "%s", nic.Address)
	if nic.Gateway != "" {
		set(net+"ipv4.gateway", "%s", nic.Gateway)
	}
	set(net+"flags", "up")
	if refusesRouters(n.LinkKind(nic)) {
		set("lxc.sysctl.net.ipv6.conf."+nic.Name+".accept_ra", "0")
	}
	if !takes {
		return nil
	}
	set("lxc.hook.post-stop", "%s", c.returning(nic))
	return c.writeReturning(nic)
}

// returning is a script that LXC runs when the node has ended: it moves an interface of the host from beside the monitor to
// where it came from. A virtual one would end with the monitor.
func (c container) returning(nic spec.NIC) string { return c.File("return-" + nic.Name) }

func (c container) writeReturning(nic spec.NIC) error {
	const script = "#!/bin/sh\n# Orrery: give the interface %[1]s back to the host.\n" +
		"[ \"$LXC_TARGET\" = reboot ] || ip link set dev %[1]s netns 1\n"
	return host.WriteFile(host.File{Path: c.returning(nic), Content: fmt.Appendf(nil, script, nic.Parent), Mode: 0o700})
}

// makeLinks makes the links of a node that is to start, with their inner ends in a namespace of the node's monitor.
func (c container) makeLinks(r *nodedir.Record, space *os.File) error {
	for i, nic := range r.NICs {
		if err := kind.Attach(nic, r.KindOf(nic), inner(i, &r.Node, nic), space); err != nil {
			return err
		}
	}
	return nil
}

// refusesRouters reports whether a node is told not to believe router advertisements on a network of a kind. On networks that
// are a wire of the host's, there may be a router that is right.
func refusesRouters(kind site.NetworkKind) bool {
	if !kind.HasHostEnds() {
		return false
	}
	_, err := os.Stat("/proc/sys/net/ipv6") // else LXC would not start the node
	return err == nil
}

// removeLinks removes what makeLinks has made, after a start that failed.
func (c container) removeLinks(r *nodedir.Record, space *os.File) error {
	var err error
	for _, nic := range r.NICs {
		if r.Takes(nic) {
			err = errors.Join(err, ends.TakeBack(nic, space))
		}
	}
	return errors.Join(err, network.RemoveLinks(hostEnds(r)))
}

// hostEnds are the names of the host's ends of a node's links.
func hostEnds(r *nodedir.Record) []string {
	var all []string
	for _, nic := range r.NICs {
		all = append(all, nic.HostEnd)
	}
	return all
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
	ctx, cancel := engine.Cleanup(ctx)
	defer cancel()
	var err error
	for _, nic := range r.NICs {
		if site.KindOf(nic.Kind).TakesInterfaces { // even if it is on a bridge now
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
		if n.LinkKind(*nic).Wired() {
			if inside == nil {
				inside = settled(taken(n), func() map[string]bool { return interfaces(c.init()) })
			}
			if !inside[nic.Name] {
				nic.Bridge = ""
			}
		} else {
			nic.Bridge = ends.Whereabouts(*nic, n.KindOf(*nic))
			if nic.Bridge == "" && !ends.Exists(nic.HostEnd) {
				n.Unlinked = append(n.Unlinked, nic.Network)
			}
		}
	}
}

// taken returns the names of the interfaces that a node takes to itself, so that the host has no end of them.
func taken(n *observe.Node) (names []string) {
	for _, nic := range n.NICs {
		if n.LinkKind(nic).Wired() {
			names = append(names, nic.Name)
		}
	}
	return names
}

// When a node reboots by itself, LXC forks its new init first and then moves the interfaces to it. For so long, one that is not
// there may only be on its way.
const (
	settlingTimeout  = 500 * time.Millisecond
	settlingInterval = 20 * time.Millisecond
)

// settled returns the interfaces that look finds: as soon as the named ones are among them, or else when they have had the time to come.
func settled(names []string, look func() map[string]bool) map[string]bool {
	for begun := time.Now(); ; time.Sleep(settlingInterval) {
		found := look()
		missing := slices.ContainsFunc(names, func(name string) bool { return !found[name] })
		if !missing || time.Since(begun) > settlingTimeout {
			return found
		}
	}
}

// interfaces returns the names of the network interfaces that a process has (proc_pid_net(5)).
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
