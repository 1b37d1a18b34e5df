// Package frames makes Ethernet frames of every kind that a node may or may not send. Tests of the
// rules and the attack program (test/attack) send the same frames.
package frames

import (
	"bytes"
	"net"
	"net/netip"
)

// A Party is a sender of frames, or the node that they are about.
type Party struct {
	MAC  net.HardwareAddr
	IPv4 netip.Addr
}

// LinkLocal returns the IPv6 address that is derived from the MAC (EUI-64, RFC 4291).
func (p Party) LinkLocal() netip.Addr {
	a := [16]byte{0: 0xfe, 1: 0x80, 11: 0xff, 12: 0xfe}
	copy(a[8:], p.MAC[:3])
	copy(a[13:], p.MAC[3:])
	a[8] ^= 2
	return netip.AddrFrom16(a)
}

// A Kind is one kind of frame.
type Kind struct {
	Name string
	// Allowed reports whether a node may send it. All others pass only if the network has spoof =
	// true.
	Allowed bool
	build   maker
}

// A maker returns a frame that me sends, in which other is addressed or posed as.
type maker func(me, other Party) []byte

const (
	minFrame = 60 // bytes, without the checksum that the card adds
	// mark is put after the contents of a frame, where no program looks, before the name of the
	// kind and a line break.
	mark = "frame:"
)

// Frame returns a frame of this kind that me sends. If the kind is a forgery, me poses as other.
// Find recognises the frame.
func (k Kind) Frame(me, other Party) []byte {
	b := k.build(me, other)
	b = append(b, mark+k.Name+"\n"...)
	return append(b, make([]byte, max(0, minFrame-len(b)))...)
}

// Find returns the name of the kind of a frame that Frame made.
func Find(frame []byte) (string, bool) {
	_, name, ok := bytes.Cut(frame, []byte(mark))
	if !ok {
		return "", false
	}
	name, _, ok = bytes.Cut(name, []byte("\n"))
	return string(name), ok
}

// FindFrom returns the name of the kind of a frame that Frame made for me and other. It recognises
// even frames that have lost their end: with br_netfilter, a bridge cuts off everything after an IP
// packet.
func FindFrom(frame []byte, me, other Party) (string, bool) {
	if name, ok := Find(frame); ok {
		return name, true
	}
	for _, k := range All() {
		if bytes.HasPrefix(frame, k.build(me, other)) {
			return k.Name, true
		}
	}
	return "", false
}

// Named returns the kind with a name.
func Named(name string) (Kind, bool) {
	for _, k := range All() {
		if k.Name == name {
			return k, true
		}
	}
	return Kind{}, false
}
