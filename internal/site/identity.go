package site

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// A node's identity survives re-creation. It follows entirely from names, so a recreated node looks
// the same to its peers.

// digest returns a hash that is unique for the sequence of words.
func digest(words ...string) [32]byte {
	return sha256.Sum256([]byte(strings.Join(words, "\x00")))
}

// FullID puts the number of a release in front of a node's id, which gets at least three digits.
// Different pairs could give the same number, but package check refuses such sites.
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

// ReleaseName returns a release number for display, or "none" for 0.
func ReleaseName(release int) string {
	if release == 0 {
		return "none"
	}
	return strconv.Itoa(release)
}

// Quarantine returns the key of the networks of a release's quarantine, which replaces Site.Key.
func Quarantine(key string, release int) string { return key + "." + strconv.Itoa(release) }

// IsQuarantine reports whether networks is the key of a quarantine of the site with this key.
func IsQuarantine(key, networks string) bool {
	release, ok := strings.CutPrefix(networks, key+".")
	_, err := strconv.Atoi(release)
	return ok && err == nil
}

// MAC returns the MAC address of a node on a network: locally administered and unicast (IEEE 802,
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
// The name of a veth pair is digested as "cable.NAME", its former name, so that existing links on
// hosts are found.
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

// VXLANName returns the name of the device that joins a network's bridge with those on other hosts.
func VXLANName(site, network string) string {
	d := digest("vxlan", site, network)
	return "orx" + hex.EncodeToString(d[:5])
}

// InnerAddress returns the address of a host inside an encrypted network. Other hosts reach the host there
// at a unique local IPv6 address (RFC 4193). Argument at is the host's outer address.
func InnerAddress(site, network string, at netip.Addr) netip.Addr {
	net, host := digest("wireguard", site, network), digest("wireguard host", at.String())
	a := [16]byte{0: 0xfd}
	copy(a[1:6], net[:])
	copy(a[8:], host[:8])
	return netip.AddrFrom16(a)
}

// VNI returns the number by which hosts distinguish a network's packets from others: 1 to 2^24-1
// (RFC 7348). Two networks may get the same number. The host notices this when it creates the
// second one.
func VNI(site, network string) int {
	d := digest("vni", site, network)
	return max(1, int(d[0])<<16|int(d[1])<<8|int(d[2]))
}
