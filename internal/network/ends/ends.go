// Package ends names the host's ends of links: those to nodes, whose names follow from
// the node and the network (spec.NIC.HostEnd), and those of routers and veth pairs. It makes those
// that no container engine makes, and tells where each is.
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

// RouterPrefix begins the names of the host's ends of the links of routers.
const RouterPrefix = "oro"

// BridgeOf returns the bridge that a link of the host is on; "" if it is on none, or not there.
func BridgeOf(link string) string {
	master, err := os.Readlink(filepath.Join("/sys/class/net", link, "master"))
	if err != nil {
		return ""
	}
	return filepath.Base(master)
}

// Whereabouts returns the bridge where the host's end of a link to a node is: as recorded, if it
// stands by itself as those of routed networks do; "" if it is not there. A switch that was cut
// short may have moved it before it could write that down, and somebody may have removed it.
func Whereabouts(nic spec.NIC, kind string) string {
	on := BridgeOf(nic.HostEnd)
	if !site.KindOf(kind).Routed || on != "" || !Exists(nic.HostEnd) {
		return on
	}
	return nic.Bridge
}

// Exists reports whether the host has a link.
func Exists(link string) bool {
	_, err := os.Stat(filepath.Join("/sys/class/net", link))
	return err == nil
}

// DisableIPv6 keeps the host from taking addresses and routes from router advertisements of nodes
// on a link: networks have IPv4 subnets only. Between nodes IPv6 works all the same.
func DisableIPv6(link string) error {
	err := os.WriteFile("/proc/sys/net/ipv6/conf/"+link+"/disable_ipv6", []byte("1"), 0o644)
	if errors.Is(err, os.ErrNotExist) { // a kernel without IPv6
		return nil
	}
	return err
}

// MAC returns the hardware address of a link: locally administered, unicast, and the same whenever
// the link is made again.
func MAC(name string) net.HardwareAddr {
	d := sha256.Sum256([]byte("link\x00" + name))
	return net.HardwareAddr{d[0]&0xfc | 0x02, d[1], d[2], d[3], d[4], d[5]}
}
