package site

import (
	"encoding/binary"
	"net/netip"
	"strconv"
)

// DeriveAddress returns the default address of a node on a network: the network's base address plus
// the id. Ids beyond the end of the subnet continue at its first address. If the result is the
// gateway's address, DeriveAddress takes addresses from a hash of the names until one differs.
//
// The result depends only on the arguments, so a node keeps its address when other nodes come and
// go. Package check reports two nodes with the same address. DeriveAddress returns the zero Addr if
// the subnet has no room.
func DeriveAddress(site, node string, id int, n Network) netip.Addr {
	room := SubnetCapacity(n.Subnet)
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

// SubnetCapacity returns the number of addresses available for the nodes and the gateway of a subnet. The
// network and broadcast addresses do not count. It returns 0 if subnet is not an IPv4 subnet.
func SubnetCapacity(subnet netip.Prefix) int {
	if !subnet.IsValid() || !subnet.Addr().Is4() || subnet.Bits() > 30 || subnet.Bits() < 1 {
		return 0
	}
	return 1<<(32-subnet.Bits()) - 2
}

// Broadcast returns the last address of an IPv4 subnet.
func Broadcast(subnet netip.Prefix) netip.Addr {
	return AddressAfter(subnet.Masked().Addr(), SubnetCapacity(subnet)+1)
}

// AddressAfter returns the i-th IPv4 address after a, or the zero Addr if there is none.
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

// IPv6AddressesAfter returns, for each address in all, the i-th IPv6 address after it. Only the 64 bits of
// the interface identifier change.
func IPv6AddressesAfter(all []netip.Addr, i int) []netip.Addr {
	var after []netip.Addr
	for _, a := range all {
		if !a.Is6() {
			after = append(after, a) // package check reports it
			continue
		}
		b := a.As16()
		binary.BigEndian.PutUint64(b[8:], binary.BigEndian.Uint64(b[8:])+uint64(i))
		after = append(after, netip.AddrFrom16(b).WithZone(a.Zone()))
	}
	return after
}
