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

// innerName returns the name that a node's interface has before LXC moves it into the node.
func innerName(i int, n *spec.Node, nic spec.NIC) string {
	if n.TakesInterface(nic) {
		return nic.TakenName()
	}
	return fmt.Sprintf("in%d", i)
}

// links are the interfaces of a node, including those that it takes from the host.
type links struct {
	dir nodedir.Dir
	*nodedir.Record
}

func (c container) links(r *nodedir.Record) links { return links{c.Dir, r} }

// write sets the configuration of the node's interfaces (lxc.container.conf(5), NETWORK). LXC finds
// the interfaces in its monitor's network namespace and moves them into the node. It moves them
// back when the node ends or reboots by itself.
func (l links) write(set func(key, format string, args ...any)) error {
	for i, nic := range l.NICs {
		net := fmt.Sprintf("lxc.net.%d.", i)
		set(net+"type", "phys")
		set(net+"link", "%s", innerName(i, &l.Node, nic))
		set(net+"name", "%s", nic.Name)
		if !l.TakesInterface(nic) { // an interface taken from the host has its own address, or has got the node's
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
		if !l.TakesInterface(nic) {
			continue
		}
		script, err := l.writeReturnScript(nic)
		if err != nil {
			return err
		}
		set("lxc.hook.post-stop", "%s", script)
	}
	return nil
}

// writeReturnScript writes a script that LXC runs when the node has ended. It moves a host interface from
// the monitor's network namespace back to the host's. A virtual interface would be removed with the
// monitor's namespace.
func (l links) writeReturnScript(nic spec.NIC) (path string, err error) {
	const script = "#!/bin/sh\n# Orrery: give the interface %[1]s back to the host.\n" +
		"[ \"$LXC_TARGET\" = reboot ] || ip link set dev %[1]s netns 1\n"
	path = l.dir.File("return-" + nic.Name)
	return path, host.WriteFile(host.File{Path: path, Content: fmt.Appendf(nil, script, nic.TakenName()), Mode: 0o700})
}

// attach creates the links of a node that is about to start, with the inner ends in space, the
// namespace of the node's monitor.
func (l links) attach(space *os.File) error {
	for i, nic := range l.NICs {
		if err := kind.Attach(nic, l.KindOf(nic), innerName(i, &l.Node, nic), space); err != nil {
			return err
		}
	}
	return nil
}

// refusesRouters reports whether a node must ignore router advertisements on a network of this
// kind. Networks on a wire of the host may have a legitimate router.
func refusesRouters(kind site.NetworkKind) bool {
	if !kind.HasHostEnds() {
		return false
	}
	_, err := os.Stat("/proc/sys/net/ipv6") // without this file, LXC would not start the node
	return err == nil
}

// detach removes the links made by attach after a failed start.
func (l links) detach(space *os.File) error {
	var err error
	for _, nic := range l.NICs {
		if l.TakesInterface(nic) {
			err = errors.Join(err, ends.ReclaimExclusive(nic, space))
		}
	}
	return errors.Join(err, l.remove())
}

// remove removes the links through their ends on the host.
func (l links) remove() error {
	var all []string
	for _, nic := range l.NICs {
		all = append(all, nic.HostIfName)
	}
	return network.RemoveLinks(all)
}

// owner returns the name of the node that is recorded for interfaces taken from the host.
func (l links) owner() string { return l.Site + "/" + strconv.Itoa(l.ID) }

// passThrough prepares the host interfaces that the node takes when it starts.
func (l links) passThrough(ctx context.Context) error {
	for _, nic := range l.NICs {
		if !l.TakesInterface(nic) {
			continue
		}
		if err := network.PreparePassthrough(ctx, nic, l.owner()); err != nil {
			return errors.Join(err, l.returnInterfaces(ctx))
		}
	}
	return nil
}

// returnInterfaces resets host interfaces that the node had taken. LXC or the kernel has moved them back
// already. A veth pair is lost if both ends were in killed nodes.
func (l links) returnInterfaces(ctx context.Context) error {
	ctx, cancel := engine.Cleanup(ctx)
	defer cancel()
	var err error
	for _, nic := range l.NICs {
		if site.KindOf(nic.Kind).TakesInterfaces { // even if the interface is on a bridge now
			err = errors.Join(err, network.RestorePassthrough(ctx, nic, l.owner()))
		}
	}
	return err
}

// observeLinks sets where the links of a running node really are.
func (p processes) observeLinks(n *observe.Node) {
	var inside map[string]bool
	for i := range n.NICs {
		nic := &n.NICs[i]
		if n.LinkKind(*nic).Wired() {
			if inside == nil {
				inside = awaitInterfaces(takenInterfaces(n), func() map[string]bool { return interfaces(p.init()) })
			}
			if !inside[nic.Name] {
				nic.Bridge = ""
			}
		} else {
			nic.Bridge = ends.BridgeOfNIC(*nic, n.KindOf(*nic))
			if nic.Bridge == "" && !ends.Exists(nic.HostIfName) {
				n.Unlinked = append(n.Unlinked, nic.Network)
			}
		}
	}
}

// takenInterfaces returns the names of interfaces that a node takes completely, so that no end of them is on
// the host.
func takenInterfaces(n *observe.Node) (names []string) {
	for _, nic := range n.NICs {
		if n.LinkKind(nic).Wired() {
			names = append(names, nic.Name)
		}
	}
	return names
}

// When a node reboots by itself, LXC first forks the new init and then moves the interfaces to it.
// For settlingTimeout, a missing interface may still be on its way.
const (
	settlingTimeout  = 500 * time.Millisecond
	settlingInterval = 20 * time.Millisecond
)

// awaitInterfaces returns the interfaces found by look. It returns as soon as the named ones are among
// them, or after settlingTimeout.
func awaitInterfaces(names []string, look func() map[string]bool) map[string]bool {
	for begun := time.Now(); ; time.Sleep(settlingInterval) {
		found := look()
		missing := slices.ContainsFunc(names, func(name string) bool { return !found[name] })
		if !missing || time.Since(begun) > settlingTimeout {
			return found
		}
	}
}

// interfaces returns the names of the network interfaces that a process sees (proc_pid_net(5)).
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
