package vxlan

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"orrery/internal/network/ends"
	"orrery/internal/network/wireguard"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// Port is the UDP port on which hosts receive VXLAN packets (IANA: vxlan).
const Port = 4789

// Prefix begins the names of the devices of all networks (site.VXLANName).
const Prefix = "orx"

// Name returns the name of a network's device.
func Name(n spec.Network) string { return site.VXLANName(n.Site, n.Name) }

// Check returns an error if no device can be made from the spec, before anything is changed.
func Check(n spec.Network) error {
	if err := checkUplink(n); err != nil {
		return err
	}
	v := n.VXLAN
	if v == (spec.VXLAN{}) {
		return nil
	}
	local, err := netip.ParseAddr(v.Local)
	peers, err2 := v.ParsePeers()
	wrong := errors.Join(err, err2)
	if v.ID < 1 || v.ID >= 1<<24 {
		wrong = errors.Join(wrong, fmt.Errorf("%d is not a valid VXLAN number", v.ID))
	}
	for _, p := range peers {
		if p.Address.Is4() != local.Is4() || !p.Address.IsGlobalUnicast() || p.Address.Zone() != "" {
			wrong = errors.Join(wrong, fmt.Errorf("%s cannot be the address of a host if the local one is %s", p.Address, local))
		}
		for _, text := range p.MACs {
			if mac, err := net.ParseMAC(text); err != nil || len(mac) != 6 || mac[0]&1 != 0 {
				wrong = errors.Join(wrong, fmt.Errorf("%q is not a valid hardware address of a node", text))
			}
		}
	}
	if !site.KindOf(n.Kind).Bridged {
		wrong = errors.Join(wrong, errors.New("only a bridge can be joined with others"))
	}
	if wrong != nil {
		return problem.New(problem.Unable, "network %s: it cannot be joined with other hosts", n.Name).Because(wrong)
	}
	return nil
}

// Make joins a network's bridge with the bridges on other hosts as specified, or removes the
// existing connection if none is specified. The walls are built first.
func Make(n spec.Network, bridge netlink.Link) error {
	if n.VXLAN == (spec.VXLAN{}) && n.Uplink == (spec.Uplink{}) {
		return Remove(n)
	}
	if err := checkUplinkConflicts(n); err != nil {
		return err
	}
	if err := installFilter(n); err != nil {
		return err
	}
	if err := wireguard.Make(n); err != nil {
		return err
	}
	link, err := open(n)
	if err != nil {
		return err
	}
	if l, ok := link.(*netlink.Vxlan); ok {
		if err := setFDB(l, n.VXLAN); err != nil {
			return fmt.Errorf("forwarding table of %s: %w", Name(n), err)
		}
	}
	if err := ends.DisableIPv6(Name(n)); err != nil {
		return err
	}
	if link.Attrs().MTU != n.MTU {
		if err := netlink.LinkSetMTU(link, n.MTU); err != nil {
			return fmt.Errorf("mtu %d of %s: %w", n.MTU, Name(n), err)
		}
	}
	if link.Attrs().MasterIndex != bridge.Attrs().Index {
		if err := netlink.LinkSetMaster(link, bridge); err != nil {
			return err
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return err
	}
	return attachUplink(n)
}

// Remove removes the connection of a network's bridge to other hosts, if there is one.
func Remove(n spec.Network) error {
	link, err := findLink(Name(n))
	if err == nil && link != nil && isOurs(link, n) {
		if err = detachUplink(n); err == nil {
			err = netlink.LinkDel(link)
		}
	}
	if err != nil && !errors.Is(err, unix.ENODEV) {
		return err
	}
	if err := wireguard.Remove(n); err != nil {
		return err
	}
	return removeFilter(n)
}

// open returns the device of a network, marked, and makes it if it does not exist.
func open(n spec.Network) (netlink.Link, error) {
	link, err := findLink(Name(n))
	if err != nil {
		return nil, err
	}
	if link != nil && !isOurs(link, n) {
		return nil, problem.New(problem.Unable, "network %s: the host has an interface %s that is not Orrery's", n.Name,
			Name(n)).
			Try("rename it or remove it: ip link delete %s", Name(n))
	}
	if link != nil && !matchesSpec(link, n) {
		if err := netlink.LinkDel(link); err != nil {
			return nil, err
		}
		link = nil
	}
	if link == nil {
		shall, err := newDevice(n)
		if err != nil {
			return nil, err
		}
		if err := netlink.LinkAdd(shall); err != nil {
			return nil, deviceError(n, err)
		}
		if link, err = findLink(Name(n)); err != nil || link == nil {
			return nil, errors.Join(err, fmt.Errorf("%s has vanished", Name(n)))
		}
	}
	if link.Attrs().Alias != mark(n) {
		err = netlink.LinkSetAlias(link, mark(n))
	}
	return link, err
}

func newDevice(n spec.Network) (netlink.Link, error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr, attrs.MTU = Name(n), ends.MAC(Name(n)), n.MTU
	if n.Uplink != (spec.Uplink{}) {
		return newUplink(n, attrs)
	}
	return &netlink.Vxlan{LinkAttrs: attrs, VxlanId: n.VXLAN.ID, SrcAddr: net.ParseIP(n.VXLAN.Local), Port: Port,
		UDPCSum: true}, nil
}

// matchesSpec reports whether a device can be kept, so that only its table of hosts and nodes must be
// updated.
func matchesSpec(link netlink.Link, n spec.Network) bool {
	if n.Uplink != (spec.Uplink{}) {
		return uplinkOf(link) == n.Uplink
	}
	v := n.VXLAN
	l, ok := link.(*netlink.Vxlan)
	return ok && l.VxlanId == v.ID && l.Port == Port && !l.Learning && l.Group == nil && l.VtepDevIndex == 0 &&
		addressOf(l) == v.Local
}

func addressOf(l *netlink.Vxlan) string {
	at, _ := netip.AddrFromSlice(l.SrcAddr)
	return at.Unmap().String()
}

// mark returns the alias of a device, which describes what it was made for.
func mark(n spec.Network) string { return "orrery vxlan " + n.Site + " " + n.Name }

// isOurs reports whether Orrery made a device for a network. It checks the mark or, if the maker was
// killed before setting it, the hardware address.
func isOurs(link netlink.Link, n spec.Network) bool {
	attrs := link.Attrs()
	return slices.Contains([]string{"vxlan", "vlan", "veth"}, link.Type()) &&
		(attrs.Alias == mark(n) || attrs.Alias == "" && bytes.Equal(attrs.HardwareAddr, ends.MAC(attrs.Name)))
}

// deviceError explains an error of the kernel when it makes a device.
func deviceError(n spec.Network, err error) error {
	switch {
	case errors.Is(err, unix.EOPNOTSUPP) && n.Uplink.VLAN != 0:
		return problem.New(problem.Unable, "network %s: the kernel of this host has no VLANs", n.Name).Because(err).
			Try("modprobe 8021q")
	case errors.Is(err, unix.EOPNOTSUPP):
		return problem.New(problem.Unable, "network %s: the kernel of this host has no VXLAN", n.Name).Because(err).
			Try("modprobe vxlan")
	case errors.Is(err, unix.EADDRINUSE):
		return problem.New(problem.Unable, "network %s: another program uses UDP port %d of this host", n.Name, Port).
			Because(err).Try("ss -ulnp 'sport = %d' shows which", Port)
	case errors.Is(err, unix.EEXIST):
		links, _ := netlink.LinkList()
		for _, link := range links {
			if l, ok := link.(*netlink.Vxlan); ok && l.VxlanId == n.VXLAN.ID {
				return problem.New(problem.Unable, "network %s: its VXLAN number %d is already used by %s (%q)", n.Name,
					l.VxlanId, l.Name, l.Alias).
					Try("give the network another name: the numbers derived from the names of site and network collide")
			}
		}
	}
	return err
}

// findLink returns a link, or nil.
func findLink(name string) (netlink.Link, error) {
	link, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil, nil
	}
	return link, err
}

// Observe returns how networks are joined with other hosts, from the links of the host, and what of
// it differs from what Make made.
func Observe(links []netlink.Link) (*State, error) {
	s, err := ReadState(links)
	if err == nil {
		s.filters, err = readFilters()
	}
	return s, err
}

// ReadState is like Observe, but does not read the walls.
func ReadState(links []netlink.Link) (s *State, err error) {
	s = &State{links: map[string]netlink.Link{}}
	for _, link := range links {
		s.links[link.Attrs().Name] = link
		s.some = s.some || link.Type() == "vxlan"
	}
	if s.some {
		s.tables, err = readFDBs()
	}
	return s, err
}

// State is how the networks of a host are joined with other hosts.
type State struct {
	some    bool
	links   map[string]netlink.Link
	tables  map[int]fdb
	filters map[string][]string
}

// WithOverlay returns a network with its current connection to other hosts, or without one if there is
// none.
func (s *State) WithOverlay(n spec.Network) spec.Network {
	n, _, _ = s.withOverlay(n)
	return n
}

// withOverlay also returns the device, or nil if there is none, and whether its encryption is as Make
// left it.
func (s *State) withOverlay(n spec.Network) (_ spec.Network, device netlink.Link, whole bool) {
	n.VXLAN, n.Uplink = spec.VXLAN{}, spec.Uplink{}
	link := s.links[Name(n)]
	if link == nil || !isOurs(link, n) {
		return n, nil, true
	}
	if l, ok := link.(*netlink.Vxlan); ok {
		n.VXLAN = spec.VXLAN{ID: l.VxlanId, Local: addressOf(l), Peers: spec.FormatPeers(s.tables[l.Index].peers())}
	} else {
		n.Uplink = uplinkOf(link)
	}
	key, hosts, whole := wireguard.Read(n, s.links)
	if n.VXLAN.Key = key; key != "" {
		peers, _ := n.VXLAN.ParsePeers() // they were formatted just above
		for i, p := range peers {
			host := hosts[p.Address]
			peers[i].Endpoint, peers[i].Key = host.Endpoint, host.Key
			delete(hosts, p.Address)
		}
		n.VXLAN.Peers = spec.FormatPeers(peers)
		whole = whole && len(hosts) == 0
	}
	return n, link, whole
}

// WithDrift returns a network with its current connection to other hosts, and the drift of that.
func (s *State) WithDrift(n spec.Network) (spec.Network, []observe.NetworkDrift) {
	n, link, whole := s.withOverlay(n)
	if link == nil {
		if len(s.filters[tableName(n)]) > 0 {
			return n, []observe.NetworkDrift{observe.FiltersChanged}
		}
		return n, nil
	}
	var drift []observe.NetworkDrift
	bridge, attrs := s.links[n.Bridge], link.Attrs()
	if !matchesSpec(link, n) || attrs.Flags&net.FlagUp == 0 || attrs.MTU != n.MTU || bridge == nil ||
		attrs.MasterIndex != bridge.Attrs().Index || !isUplinkAttached(n) || !whole {
		drift = append(drift, observe.InterconnectChanged)
	}
	if !s.hasFilter(n) {
		drift = append(drift, observe.FiltersChanged)
	}
	return n, drift
}
