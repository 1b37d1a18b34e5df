package site

import (
	"encoding/binary"
	"net/netip"
	"strconv"
)

// DeriveAddress returns the address that a node has on a network unless it says one itself: the
// network's base + id. Ids that do not fit in the subnet start again at its first address. Where
// this gives the gateway's address, a hash of the names is tried until it gives another. It depends
// on nothing but its arguments, so that a node keeps its address whatever other nodes come and go;
// that two nodes get the same is for Check to find. It returns the zero Addr if the subnet has no
// room.
func DeriveAddress(site, node string, id int, n Network) netip.Addr {
	room := Room(n.Subnet)
	if room <= 0 || id <= 0 || room == 1 && n.Subnet.Contains(n.Gateway) {
		return netip.Addr{}
	}
	address := AddressAfter(n.Subnet.Addr(), 1+(id-1)%room)
	for try := 0; address == n.Gateway; try++ {
		d := digest("address", site, n.Name, node, strconv.Itoa(try))
		address = AddressAfter(n.Subnet.Addr(), 1+int(binary.BigEndian.Uint32(d[:4])%uint32(room)))
	}
	return address
}

// Room returns the number of addresses that nodes and gateway of a subnet can have: all but the
// network's own and the broadcast address. It is 0 for what is no IPv4 subnet.
func Room(subnet netip.Prefix) int {
	if !subnet.IsValid() || !subnet.Addr().Is4() || subnet.Bits() > 30 || subnet.Bits() < 1 {
		return 0
	}
	return 1<<(32-subnet.Bits()) - 2
}

// Broadcast returns the last address of an IPv4 subnet.
func Broadcast(subnet netip.Prefix) netip.Addr {
	return AddressAfter(subnet.Masked().Addr(), Room(subnet)+1)
}

// AddressAfter returns the i-th IPv4 address after one, or the zero Addr if there is none.
func AddressAfter(a netip.Addr, i int) netip.Addr {
	if !a.Is4() {
		return netip.Addr{}
	}
	octets := a.As4()
	n := uint64(binary.BigEndian.Uint32(octets[:])) + uint64(i)
	if n > 0xffffffff {
		return netip.Addr{}
	}
	binary.BigEndian.PutUint32(octets[:], uint32(n))
	return netip.AddrFrom4(octets)
}

// SixesAfter returns the i-th IPv6 address after each of some, within its 64 bits for interfaces.
func SixesAfter(all []netip.Addr, i int) []netip.Addr {
	var after []netip.Addr
	for _, a := range all {
		if !a.Is6() {
			after = append(after, a) // check tells that it is none
			continue
		}
		b := a.As16()
		binary.BigEndian.PutUint64(b[8:], binary.BigEndian.Uint64(b[8:])+uint64(i))
		after = append(after, netip.AddrFrom16(b).WithZone(a.Zone()))
	}
	return after
}
