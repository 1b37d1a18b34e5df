package lxc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"

	"orrery/internal/engine/nodedir"
	"orrery/internal/network"
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
	if kind == site.Routed {
		return c.writeLaying(nic)
	}
	return nil
}

// laying is a script that LXC runs on the host whenever it has made the link of a routed network, which it does also when the node
// reboots by itself.
func (c container) laying(nic spec.NIC) string { return c.File("up-" + nic.Name) }

// The host answers for the gateway and, by proxy ARP (proxy_arp of ip-sysctl), for every other address of the subnet, and at once; it takes
// from the link nothing but what comes from the node's address (rp_filter), so that rules which go by links hold for addresses, too.
var laid = template.Must(template.New("").Parse(`#!/bin/sh -e
# Orrery: the host's end of {{.Name}} on the routed network {{.Network}}.
cd /proc/sys/net
echo 1 >ipv4/conf/{{.HostEnd}}/forwarding
echo 1 >ipv4/conf/{{.HostEnd}}/proxy_arp
echo 0 >ipv4/neigh/{{.HostEnd}}/proxy_delay
echo 1 >ipv4/conf/{{.HostEnd}}/rp_filter
echo 1 >ipv4/conf/{{.HostEnd}}/arp_ignore
if [ -e ipv6/conf/{{.HostEnd}}/disable_ipv6 ]; then echo 1 >ipv6/conf/{{.HostEnd}}/disable_ipv6; fi
ip address replace {{.Via}}/32 dev {{.HostEnd}}
ip link set {{.HostEnd}} up
ip route replace {{.Alone}}/32 dev {{.HostEnd}} src {{.Via}}
`))

func (c container) writeLaying(nic spec.NIC) error {
	var b bytes.Buffer
	alone, _, _ := strings.Cut(nic.Address, "/")
	if err := laid.Execute(&b, struct {
		spec.NIC
		Alone string
	}{nic, alone}); err != nil {
		return err
	}
	if err := os.WriteFile(c.laying(nic), b.Bytes(), 0o700); err != nil {
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

// observeLinks notes where the links of a running node really are: a switch that was cut short may have moved them before it could
// write that down, and somebody may have removed them.
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
		case site.Routed:
			if _, err := os.Stat(filepath.Join("/sys/class/net", nic.HostEnd)); err != nil {
				nic.Bridge = ""
			} else if on := bridgeOf(nic.HostEnd); on != "" {
				nic.Bridge = on
			}
		default:
			nic.Bridge = bridgeOf(nic.HostEnd)
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
