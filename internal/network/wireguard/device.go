// Package wireguard encrypts the traffic of a network between hosts. Each host has a WireGuard
// device, for one network alone, that carries the network's VXLAN.
//
// The private key of a host stays there, in a file that only root can read and in the kernel. The
// plan writes the public keys into the network's spec, as its hosts report them. The device accepts
// packets only from hosts of the network, each only with its own address inside the tunnel. The
// walls of the VXLAN ensure that no packet bypasses the device.
package wireguard

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/mdlayher/genetlink"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/wgctrl"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// Name returns the name of a network's device.
func Name(n spec.Network) string { return "orw" + site.VXLANName(n.Site, n.Name)[3:] }

// Port returns the UDP port on which hosts receive a network's packets.
func Port(n spec.Network) int { return 20000 + n.VXLAN.ID%10000 }

// overheadVXLAN is the size of the headers that a VXLAN puts before each frame, with IPv6.
const overheadVXLAN = 14 + 8 + 8 + 40

// Supported returns an Unable problem if the kernel has no WireGuard. It loads the module if
// possible.
func Supported() error {
	c, err := genetlink.Dial(nil)
	if err == nil {
		defer c.Close() //nolint:errcheck // nothing was written
		_, err = c.GetFamily("wireguard")
	}
	if err != nil {
		return problem.New(problem.Unable, "the kernel of this host has no WireGuard, which encrypted networks need").
			Because(err).
			Try("modprobe wireguard (Debian's and Ubuntu's kernels have it); or remove encrypt from the site file")
	}
	return nil
}

// SetPrivateKey makes the device of a network, if it does not exist, and sets the host's private key.
func SetPrivateKey(n spec.Network, private string) error {
	key, err := wgtypes.ParseKey(private)
	if err != nil {
		return problem.New(problem.Failed, "network %s: the key of this host cannot be read", n.Name).Because(err)
	}
	if key.PublicKey().String() != n.VXLAN.Key {
		return problem.New(problem.Surprise, "network %s: the key of this host has changed", n.Name).
			Try("run the same command again")
	}
	link, err := findLink(Name(n))
	if err != nil {
		return err
	}
	if link != nil && !isOurs(link, n) {
		return problem.New(problem.Unable, "network %s: the host has an interface %s that is not Orrery's", n.Name,
			Name(n)).Try("rename it or remove it: ip link delete %s", Name(n))
	}
	if link == nil {
		if err := Supported(); err != nil {
			return err
		}
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MTU = Name(n), n.MTU+overheadVXLAN
		if err := netlink.LinkAdd(&netlink.Wireguard{LinkAttrs: attrs}); err != nil {
			return fmt.Errorf("create %s: %w", Name(n), err)
		}
		if link, err = netlink.LinkByName(Name(n)); err != nil {
			return err
		}
	}
	if link.Attrs().Alias != mark(n) {
		if err := netlink.LinkSetAlias(link, mark(n)); err != nil {
			return err
		}
	}
	c, err := wgctrl.New()
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // all was written
	if device, err := c.Device(Name(n)); err == nil && device.PrivateKey == key {
		return nil
	}
	return c.ConfigureDevice(Name(n), wgtypes.Config{PrivateKey: &key})
}

// Make sets the peers and the address of a network's device, or removes the device if the network
// is not encrypted.
func Make(n spec.Network) error {
	if n.VXLAN.Key == "" {
		return Remove(n)
	}
	link, err := findLink(Name(n))
	if err != nil {
		return err
	}
	if link == nil || !isOurs(link, n) {
		return problem.New(problem.Failed, "network %s: its %s has vanished", n.Name, Name(n)).Try("run orrery up again")
	}
	if err := setPeers(n); err != nil {
		return deviceError(n, err)
	}
	if mtu := n.MTU + overheadVXLAN; link.Attrs().MTU != mtu {
		if err := netlink.LinkSetMTU(link, mtu); err != nil {
			return err
		}
	}
	if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+Name(n)+"/disable_ipv6", []byte("0"), 0o644); err != nil {
		return problem.New(problem.Unable,
			"network %s: the kernel of this host has no IPv6, which its hosts use between them", n.Name).Because(err).
			Try("remove ipv6.disable=1 from the kernel's command line, or encrypt from the site file")
	}
	if err := setAddress(link, n.VXLAN.Local); err != nil {
		return err
	}
	return deviceError(n, netlink.LinkSetUp(link))
}

func deviceError(n spec.Network, err error) error {
	if errors.Is(err, unix.EADDRINUSE) {
		return problem.New(problem.Unable, "network %s: another program uses UDP port %d of this host", n.Name, Port(n)).
			Because(err).Try("ss -ulnp 'sport = %d' shows which; or give the network another name", Port(n))
	}
	return err
}

// setPeers changes only the peers that differ, so that traffic continues.
func setPeers(n spec.Network) error {
	c, err := wgctrl.New()
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // all was written
	device, err := c.Device(Name(n))
	if err != nil {
		return err
	}
	if device.PublicKey.String() != n.VXLAN.Key {
		return problem.New(problem.Surprise, "network %s: its %s has another key", n.Name, Name(n)).Try("run orrery up again")
	}
	shall, err := peersOf(n)
	if err != nil {
		return err
	}
	port := Port(n)
	config := wgtypes.Config{ListenPort: &port}
	if device.ListenPort == port {
		config.ListenPort = nil
	}
	for _, p := range device.Peers {
		if !slices.ContainsFunc(shall, func(s wgtypes.PeerConfig) bool { return s.PublicKey == p.PublicKey }) {
			config.Peers = append(config.Peers, wgtypes.PeerConfig{PublicKey: p.PublicKey, Remove: true})
		}
	}
	for _, s := range shall {
		if !slices.ContainsFunc(device.Peers, func(p wgtypes.Peer) bool { return samePeer(p, s) }) {
			config.Peers = append(config.Peers, s)
		}
	}
	return c.ConfigureDevice(Name(n), config)
}

func peersOf(n spec.Network) ([]wgtypes.PeerConfig, error) {
	peers, err := n.VXLAN.ParsePeers()
	if err != nil {
		return nil, err
	}
	var all []wgtypes.PeerConfig
	for _, p := range peers {
		key, err := wgtypes.ParseKey(p.Key)
		if err != nil || !p.Endpoint.IsValid() {
			return nil, problem.New(problem.Unable, "network %s: the key of host %s is missing or invalid", n.Name, p.Endpoint).
				Because(err)
		}
		all = append(all, wgtypes.PeerConfig{
			PublicKey: key, Endpoint: net.UDPAddrFromAddrPort(netip.AddrPortFrom(p.Endpoint, uint16(Port(n)))),
			ReplaceAllowedIPs: true,
			AllowedIPs:        []net.IPNet{{IP: p.Address.AsSlice(), Mask: net.CIDRMask(128, 128)}},
		})
	}
	return all, nil
}

func samePeer(p wgtypes.Peer, s wgtypes.PeerConfig) bool {
	return p.PublicKey == s.PublicKey && p.Endpoint != nil && p.Endpoint.IP.Equal(s.Endpoint.IP) &&
		p.Endpoint.Port == s.Endpoint.Port && len(p.AllowedIPs) == 1 && p.AllowedIPs[0].String() == s.AllowedIPs[0].String()
}

// setAddress sets the only address of a device.
func setAddress(link netlink.Link, only string) error {
	existing, err := netlink.AddrList(link, netlink.FAMILY_V6)
	if err != nil {
		return err
	}
	shall, err := netlink.ParseAddr(only + "/64") // the /64 is also the route to the other hosts
	if err != nil {
		return err
	}
	for i := range existing {
		if existing[i].IPNet.String() != shall.IPNet.String() {
			if err := netlink.AddrDel(link, &existing[i]); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
				return err
			}
		}
	}
	shall.Flags = unix.IFA_F_NODAD // no other host can have the address
	return netlink.AddrReplace(link, shall)
}

// Remove removes the device of a network, if there is one.
func Remove(n spec.Network) error {
	link, err := findLink(Name(n))
	if err == nil && link != nil && isOurs(link, n) {
		err = netlink.LinkDel(link)
	}
	if errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}

// Read returns the public key of this host and the peers, by their addresses, of a network's device
// among links. The key is "" if the network is not encrypted. whole reports whether the device is
// as Make left it.
func Read(n spec.Network, links map[string]netlink.Link) (key string, peers map[netip.Addr]spec.Peer, whole bool) {
	link, ok := links[Name(n)]
	if !ok || !isOurs(link, n) {
		return "", nil, true
	}
	c, err := wgctrl.New()
	if err != nil {
		return "", nil, false
	}
	defer c.Close() //nolint:errcheck // it was only read
	device, err := c.Device(Name(n))
	if err != nil {
		return "", nil, false
	}
	peers = map[netip.Addr]spec.Peer{}
	whole = device.ListenPort == Port(n) && link.Attrs().MTU == n.MTU+overheadVXLAN && link.Attrs().Flags&net.FlagUp != 0
	for _, p := range device.Peers {
		if len(p.AllowedIPs) != 1 || p.Endpoint == nil {
			whole = false
			continue
		}
		inner, _ := netip.AddrFromSlice(p.AllowedIPs[0].IP)
		at := p.Endpoint.AddrPort()
		whole = whole && int(at.Port()) == Port(n)
		peers[inner] = spec.Peer{Address: inner, Endpoint: at.Addr().Unmap(), Key: p.PublicKey.String()}
	}
	return device.PublicKey.String(), peers, whole
}

// mark returns the alias of a device, which describes what it was made for.
func mark(n spec.Network) string { return "orrery wireguard " + n.Site + " " + n.Name }

// isOurs reports whether Orrery made a device for a network. A device without an alias counts, since
// its maker may have been killed before it set the mark.
func isOurs(link netlink.Link, n spec.Network) bool {
	return link.Type() == "wireguard" && (link.Attrs().Alias == mark(n) || link.Attrs().Alias == "")
}

// findLink returns a link, or nil.
func findLink(name string) (netlink.Link, error) {
	link, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil, nil
	}
	return link, err
}
