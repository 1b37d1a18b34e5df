package site

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Identity survives re-creation: all of it follows from names, so a node that is made again is the
// same to its peers.

// digest returns a hash of words that no other sequence of words has.
func digest(words ...string) [32]byte {
	return sha256.Sum256([]byte(strings.Join(words, "\x00")))
}

// FullID puts the number of a release before the id of a node, which is given three digits at
// least. Two pairs of them may give the same number only if check lets them pass, and it does not.
func FullID(release, id int) int {
	if release == 0 {
		return id
	}
	digits := 1000
	for digits <= id {
		digits *= 10
	}
	return release*digits + id
}

// ReleaseName returns the number of a release for people; 0 is that of none.
func ReleaseName(release int) string {
	if release == 0 {
		return "none"
	}
	return strconv.Itoa(release)
}

// Quarantine is what the networks of a site's quarantine for a release are kept under, in place of Site.Key.
func Quarantine(key string, release int) string { return key + "." + strconv.Itoa(release) }

// IsQuarantine reports whether networks are kept under a quarantine of a site.
func IsQuarantine(key, networks string) bool {
	release, ok := strings.CutPrefix(networks, key+".")
	_, err := strconv.Atoi(release)
	return ok && err == nil
}

// MAC returns the hardware address of a node on a network: locally administered, unicast (IEEE 802,
// bit 1 of the first octet set, bit 0 clear).
func MAC(site, node, network string) string {
	d := digest("mac", site, node, network)
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", d[0]&0xfc|0x02, d[1], d[2], d[3], d[4], d[5])
}

// MachineID returns a node's machine-id(5): 32 hexadecimal digits in the form of a version 4 UUID.
func MachineID(site, node string) string {
	d := digest("machine-id", site, node)
	d[6] = d[6]&0x0f | 0x40
	d[8] = d[8]&0x3f | 0x80
	return hex.EncodeToString(d[:16])
}

// BridgeName returns the name of a network's bridge on a host. It is a digest, because an interface
// name has at most 15 characters (IFNAMSIZ) and two sites may both call a network "cam".
//
// That of a veth pair is digested as "cable.NAME", as it was called before: so the links that hosts
// have are found.
func BridgeName(site, network string) string {
	if name, ok := strings.CutPrefix(network, "vethpair."); ok {
		network = "cable." + name
	}
	d := digest("bridge", site, network)
	return "orb" + hex.EncodeToString(d[:5])
}

// VethName returns the name of the host's end of the link that joins a node to a network.
func VethName(site, node, network string) string {
	d := digest("veth", site, node, network)
	return "orv" + hex.EncodeToString(d[:5])
}

// VXLANName returns the name of the device that joins a network's bridge on a host with those on others.
func VXLANName(site, network string) string {
	d := digest("vxlan", site, network)
	return "orx" + hex.EncodeToString(d[:5])
}

// Inner returns the address that a host has within an encrypted network, where the others reach it
// at an address of its own: a unique local one of IPv6 (RFC 4193).
func Inner(site, network string, at netip.Addr) netip.Addr {
	net, host := digest("wireguard", site, network), digest("wireguard host", at.String())
	a := [16]byte{0: 0xfd}
	copy(a[1:6], net[:])
	copy(a[8:], host[:8])
	return netip.AddrFrom16(a)
}

// VNI returns the number by which hosts tell what is of a network from what is of others: 1 to
// 2^24-1 (RFC 7348). Those of two networks may happen to be the same, which whoever makes the
// second one notices.
func VNI(site, network string) int {
	d := digest("vni", site, network)
	return max(1, int(d[0])<<16|int(d[1])<<8|int(d[2]))
}
