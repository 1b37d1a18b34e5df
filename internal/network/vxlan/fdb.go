package vxlan

import (
	"errors"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"orrery/internal/site/spec"
)

// A fdb is the forwarding table of a device: the host of each node, and the hosts to which
// broadcast frames are flooded.
type fdb struct {
	nodes map[string]netip.Addr // by hardware address
	flood map[netip.Addr]bool
}

// floodMAC is the hardware address under which the kernel stores the destinations of broadcast frames
// and of frames for unknown addresses.
var floodMAC = net.HardwareAddr{0, 0, 0, 0, 0, 0}

// newFDB returns the table that a device must have.
func newFDB(v spec.VXLAN) (fdb, error) {
	t := fdb{nodes: map[string]netip.Addr{}, flood: map[netip.Addr]bool{}}
	peers, err := v.ParsePeers()
	for _, p := range peers {
		t.flood[p.Address] = true
		for _, mac := range p.MACs {
			t.nodes[mac] = p.Address
		}
	}
	return t, err
}

// peers returns the hosts of a table with their nodes. A host that has nodes but receives no
// broadcasts is returned with the additional node "unflooded", so that the difference shows.
func (t fdb) peers() []spec.Peer {
	at := map[netip.Addr][]string{}
	for host := range t.flood {
		at[host] = nil
	}
	for mac, host := range t.nodes {
		at[host] = append(at[host], mac)
	}
	var all []spec.Peer
	for host, macs := range at {
		if !t.flood[host] {
			macs = append(macs, "unflooded")
		}
		all = append(all, spec.Peer{Address: host, MACs: macs})
	}
	return all
}

// readFDBs reads the tables of all devices, by their indexes.
func readFDBs() (map[int]fdb, error) {
	entries, err := listFDB()
	if err != nil {
		return nil, err
	}
	all := map[int]fdb{}
	for _, e := range entries {
		if e.Flags&unix.NTF_SELF == 0 || e.IP == nil {
			continue
		}
		t, ok := all[e.LinkIndex]
		if !ok {
			t = fdb{nodes: map[string]netip.Addr{}, flood: map[netip.Addr]bool{}}
		}
		at, _ := netip.AddrFromSlice(e.IP)
		switch at = at.Unmap(); {
		case slices.Equal(e.HardwareAddr, floodMAC):
			t.flood[at] = true
		default:
			t.nodes[e.HardwareAddr.String()] = at
		}
		all[e.LinkIndex] = t
	}
	return all, nil
}

func listFDB() ([]netlink.Neigh, error) {
	for try := 1; ; try++ {
		all, err := netlink.NeighList(0, unix.AF_BRIDGE)
		if !errors.Is(err, netlink.ErrDumpInterrupted) || try == 50 {
			return all, err
		}
	}
}

// setFDB updates the table of a device. It changes only the entries that differ, so that traffic
// continues.
func setFDB(link *netlink.Vxlan, v spec.VXLAN) error {
	shall, err := newFDB(v)
	if err != nil {
		return err
	}
	all, err := readFDBs()
	if err != nil {
		return err
	}
	existing := all[link.Index]
	entry := func(mac net.HardwareAddr, at netip.Addr) *netlink.Neigh {
		return &netlink.Neigh{
			LinkIndex: link.Index, Family: unix.AF_BRIDGE, State: netlink.NUD_PERMANENT | netlink.NUD_NOARP,
			Flags: netlink.NTF_SELF,
			IP:    at.AsSlice(), HardwareAddr: mac,
		}
	}
	for at := range shall.flood {
		if !existing.flood[at] {
			if err := netlink.NeighAppend(entry(floodMAC, at)); err != nil {
				return err
			}
		}
	}
	for text, at := range shall.nodes {
		if existing.nodes[text] == at {
			continue
		}
		mac, err := net.ParseMAC(text)
		if err != nil {
			return err
		}
		if err := netlink.NeighSet(entry(mac, at)); err != nil {
			return err
		}
	}
	for at := range existing.flood {
		if !shall.flood[at] {
			if err := netlink.NeighDel(entry(floodMAC, at)); err != nil && !errors.Is(err, unix.ENOENT) {
				return err
			}
		}
	}
	for text, at := range existing.nodes {
		if _, stays := shall.nodes[text]; stays {
			continue
		}
		mac, err := net.ParseMAC(text)
		if err != nil {
			return err
		}
		if err := netlink.NeighDel(entry(mac, at)); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return nil
}
