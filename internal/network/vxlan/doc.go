// Package vxlan joins the bridges of a network on several hosts. Each host has a VXLAN device (RFC
// 7348) as a port of the bridge. Alternatively, the port is a VLAN on an interface of the host, or
// a link to a bridge of the host (uplink.go).
//
// The device learns nothing from packets, and nothing is discovered by multicast. Its table lists
// the hosts of all nodes by hardware address, even of stopped nodes, so that starting a node needs
// no step on other hosts. It also lists the hosts to which broadcasts are sent. The plan writes the
// table (plan/overlay/overlay.go). As with all networks, the kernel is the only record.
//
// # Rules
//
// Every host has the gateway's address, with the same hardware address, because that is a digest of
// the bridge's name. Each network has an nftables table that guards the device's port. It stops the
// host's own traffic and ARP for the gateway from leaving the host, and accepts from each host only
// packets of its own nodes. So a node that moves finds its gateway unchanged.
//
// The kernel's VXLAN socket accepts packets from any sender. The rules of the site's table (package
// network) drop packets with the network's VXLAN id that do not come from one of its hosts. Two
// cases are easily forgotten. A node behind NAT can send to another host's port, and its packets
// would seem to come from this host. Any user of the host can do the same. Both are dropped where
// they leave. Decision 39 gives the reasons.
package vxlan
