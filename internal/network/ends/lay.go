package ends

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"

	"orrery/internal/site/spec"
)

// routedSettings are the settings, below /proc/sys/net, of the host's end of a link on a routed network. The
// host answers without delay for the gateway and, by proxy ARP (proxy_arp of ip-sysctl), for every
// other address of the subnet. From the link it accepts only packets from the node's address
// (rp_filter), so rules that match links also match addresses.
var routedSettings = []struct {
	file, value string
	mayLack     bool // a kernel without IPv6
}{
	{"ipv4/conf/%s/forwarding", "1", false}, {"ipv4/conf/%s/proxy_arp", "1", false},
	{"ipv4/neigh/%s/proxy_delay", "0", false},
	{"ipv4/conf/%s/rp_filter", "1", false}, {"ipv4/conf/%s/arp_ignore", "1", false},
	{"ipv6/conf/%s/disable_ipv6", "1", true},
}

const sysctlNet = "/proc/sys/net"

// SetUpRouted sets up the host's end of a link on a routed network.
func SetUpRouted(nic spec.NIC) error {
	for _, s := range routedSettings {
		err := os.WriteFile(filepath.Join(sysctlNet, fmt.Sprintf(s.file, nic.HostIfName)), []byte(s.value), 0o644)
		if err != nil && (!s.mayLack || !errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	link, err := netlink.LinkByName(nic.HostIfName)
	if err != nil {
		return err
	}
	via, err := netlink.ParseAddr(nic.Via + "/32")
	if err != nil {
		return err
	}
	if err := netlink.AddrReplace(link, via); err != nil {
		return err
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return err
	}
	to := &net.IPNet{IP: nic.Address.Addr().AsSlice(), Mask: net.CIDRMask(32, 32)}
	return netlink.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: to, Src: via.IP,
		Scope: netlink.SCOPE_LINK})
}
