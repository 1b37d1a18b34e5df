// Package ends names and makes the host's ends of links. These are links to nodes, whose names are
// derived from the node and the network (spec.NIC.HostIfName), and links of routers and veth pairs.
// The package makes the ends that no container engine makes, and finds where each end is.
package ends

import (
	"crypto/sha256"
	"errors"
	"net"
	"os"
	"path/filepath"

	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// RouterPrefix begins the names of the host's ends of routers' links.
const RouterPrefix = "oro"

// BridgeOf returns the bridge that a link of the host is on, or "" if it is on none or does not
// exist.
func BridgeOf(link string) string {
	master, err := os.Readlink(filepath.Join("/sys/class/net", link, "master"))
	if err != nil {
		return ""
	}
	return filepath.Base(master)
}

// BridgeOfNIC returns the bridge of the host's end of a link to a node, or "" if the link does not
// exist. For a routed network, whose links are on no bridge, it returns the recorded one. The
// actual bridge may differ from the record, since an interrupted switch may have moved the link
// before recording it, or the link may have been removed by hand.
func BridgeOfNIC(nic spec.NIC, kind string) string {
	on := BridgeOf(nic.HostIfName)
	if !site.KindOf(kind).Routed || on != "" || !Exists(nic.HostIfName) {
		return on
	}
	return nic.Bridge
}

// Exists reports whether the host has a link.
func Exists(link string) bool {
	_, err := os.Stat(filepath.Join("/sys/class/net", link))
	return err == nil
}

// DisableIPv6 stops the host from taking addresses and routes from router advertisements of nodes
// on a link, since networks have only IPv4 subnets. IPv6 between nodes still works.
func DisableIPv6(link string) error {
	err := os.WriteFile("/proc/sys/net/ipv6/conf/"+link+"/disable_ipv6", []byte("1"), 0o644)
	if errors.Is(err, os.ErrNotExist) { // a kernel without IPv6
		return nil
	}
	return err
}

// MAC returns the hardware address of a link. It is locally administered and unicast, and the same
// each time the link is made.
func MAC(name string) net.HardwareAddr {
	d := sha256.Sum256([]byte("link\x00" + name))
	return net.HardwareAddr{d[0]&0xfc | 0x02, d[1], d[2], d[3], d[4], d[5]}
}
