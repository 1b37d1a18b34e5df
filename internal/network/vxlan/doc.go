// Package vxlan joins the bridges of a network on several hosts: a VXLAN device (RFC 7348) on each host, as a
// port of the bridge. In its place may be a VLAN of an interface of the host, or a link to a bridge of the
// host (uplink.go).
//
// The device learns nothing from packets, and nothing is found by multicast. Its table lists the
// hosts of all nodes by hardware address, stopped nodes included, so that a start is no step on
// other hosts, and it lists where to send broadcasts. The plan writes it (plan/overlay/overlay.go).
// As with all networks, the kernel is the only record.
//
// # Rules
//
// Every host has the gateway's address, with the same hardware address, because that is a digest of the
// bridge's name. An nftables table of the network's own guards the device's port: it keeps the host's own
// traffic and ARP for the gateway on the host, and accepts from each host only its own nodes. A node that
// moves finds its gateway unchanged.
//
// The kernel's VXLAN socket accepts packets from anyone. The rules of the site's table (package network) drop
// packets with the network's number that do not come from one of its hosts. Two cases are easily forgotten: a
// node behind NAT can send to another host's port and would seem to be this host, and so can any user of the
// host. Both are dropped where they leave. Decision 39 gives the reasons.
package vxlan
