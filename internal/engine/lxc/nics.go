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

// links are those of a node, with the interfaces of the host that it takes.
type links struct {
	dir nodedir.Dir
	*nodedir.Record
}

func (c container) links(r *nodedir.Record) links { return links{c.Dir, r} }

// write writes the configuration of the node's interfaces (lxc.container.conf(5), NETWORK). LXC
// finds them beside its monitor, moves them into the node, and moves them back when the node ends
// or reboots by itself.
func (l links) write(set func(key, format string, args ...any)) error {
	for i, nic := range l.NICs {
		net := fmt.Sprintf("lxc.net.%d.", i)
		set(net+"type", "phys")
		set(net+"link", "%s", inner(i, &l.Node, nic))
		set(net+"name", "%s", nic.Name)
		if !l.Takes(nic) { // that has one of its own
			set(net+"hwaddr", "%s", nic.MAC)
		}
		set(net+"mtu", "%d", nic.MTU)
		set(net+"ipv4.address", "%s", nic.Address)
		if nic.Gateway != "" {
			set(net+"ipv4.gateway", "%s", nic.Gateway)
		}
		set(net+"flags", "up")
		if refusesRouters(l.LinkKind(nic)) {
			set("lxc.sysctl.net.ipv6.conf."+nic.Name+".accept_ra", "0")
		}
		if !l.Takes(nic) {
			continue
		}
		script, err := l.returning(nic)
		if err != nil {
			return err
		}
		set("lxc.hook.post-stop", "%s", script)
	}
	return nil
}

// returning writes a script that LXC runs when the node has ended: it moves an interface of the
// host from beside the monitor to where it came from. A virtual one would end with the monitor.
func (l links) returning(nic spec.NIC) (path string, err error) {
	const script = "#!/bin/sh\n# Orrery: give the interface %[1]s back to the host.\n" +
		"[ \"$LXC_TARGET\" = reboot ] || ip link set dev %[1]s netns 1\n"
	path = l.dir.File("return-" + nic.Name)
	return path, host.WriteFile(host.File{Path: path, Content: fmt.Appendf(nil, script, nic.Parent), Mode: 0o700})
}

// attach makes the links of a node that is to start, with their inner ends in a namespace of the
// node's monitor.
func (l links) attach(space *os.File) error {
	for i, nic := range l.NICs {
		if err := kind.Attach(nic, l.KindOf(nic), inner(i, &l.Node, nic), space); err != nil {
			return err
		}
	}
	return nil
}

// refusesRouters reports whether a node is told not to believe router advertisements on a network
// of a kind. On networks that are a wire of the host's, there may be a router that is right.
func refusesRouters(kind site.NetworkKind) bool {
	if !kind.HasHostEnds() {
		return false
	}
	_, err := os.Stat("/proc/sys/net/ipv6") // else LXC would not start the node
	return err == nil
}

// detach removes what attach has made, after a start that failed.
func (l links) detach(space *os.File) error {
	var err error
	for _, nic := range l.NICs {
		if l.Takes(nic) {
			err = errors.Join(err, ends.TakeBack(nic, space))
		}
	}
	return errors.Join(err, l.remove())
}

// remove removes the links by their ends on the host.
func (l links) remove() error {
	var all []string
	for _, nic := range l.NICs {
		all = append(all, nic.HostEnd)
	}
	return network.RemoveLinks(all)
}

// taker says of interfaces of the host which node has taken them.
func (l links) taker() string { return l.Site + "/" + strconv.Itoa(l.ID) }

// passThrough prepares the interfaces that the node takes when it starts.
func (l links) passThrough(ctx context.Context) error {
	for _, nic := range l.NICs {
		if !l.Takes(nic) {
			continue
		}
		if err := network.PassThrough(ctx, nic.Parent, l.taker()); err != nil {
			return errors.Join(err, l.giveBack(ctx))
		}
	}
	return nil
}

// giveBack makes interfaces of the host that the node had what they were before. LXC has moved them
// back, or the kernel has; a veth pair that was all in nodes that were killed is gone.
func (l links) giveBack(ctx context.Context) error {
	ctx, cancel := engine.Cleanup(ctx)
	defer cancel()
	var err error
	for _, nic := range l.NICs {
		if site.KindOf(nic.Kind).TakesInterfaces { // even if it is on a bridge now
			err = errors.Join(err, network.Reclaim(ctx, nic.Parent, l.taker()))
		}
	}
	return err
}

// observeLinks notes where the links of a running node really are.
func (p processes) observeLinks(n *observe.Node) {
	var inside map[string]bool
	for i := range n.NICs {
		nic := &n.NICs[i]
		if n.LinkKind(*nic).Wired() {
			if inside == nil {
				inside = settled(taken(n), func() map[string]bool { return interfaces(p.init()) })
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

// When a node reboots by itself, LXC forks its new init first and then moves the interfaces to it.
// For so long, one that is not there may only be on its way.
const (
	settlingTimeout  = 500 * time.Millisecond
	settlingInterval = 20 * time.Millisecond
)

// settled returns the interfaces that look finds: as soon as the named ones are among them, or else
// when they have had the time to come.
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
