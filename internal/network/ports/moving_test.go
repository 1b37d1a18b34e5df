package ports

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/test/frames"
	"orrery/test/nftest"
)

var service = netip.MustParseAddr("10.8.69.5")

// vrrpFrame returns an advertisement of a node to another (RFC 5798, 5.1).
func vrrpFrame(mac []byte, from netip.Addr, priority byte, hundredths uint16) []byte {
	body := []byte{0x31, 5, priority, 1, byte(hundredths >> 8), byte(hundredths), 0, 0, 10, 8, 69, 5}
	ip := make([]byte, 20, 64)
	ip[0], ip[8], ip[9] = 0x45, 255, vrrp
	binary.BigEndian.PutUint16(ip[2:], uint16(20+len(body)))
	copy(ip[12:], from.AsSlice())
	copy(ip[16:], second.IPv4.AsSlice())
	binary.BigEndian.PutUint16(ip[10:], frames.Checksum(ip))
	return slices.Concat(second.MAC, mac, []byte{8, 0}, ip, body)
}

// arpFrame returns an answer that a MAC has an address.
func arpFrame(mac []byte, a netip.Addr) []byte {
	return slices.Concat(second.MAC, mac, []byte{8, 6, 0, 1, 8, 0, 6, 4, 0, 2}, mac, a.AsSlice(), second.MAC,
		second.IPv4.AsSlice(), make([]byte, 18))
}

// udpFrame returns a datagram.
func udpFrame(mac []byte, from netip.Addr) []byte {
	ip := make([]byte, 28)
	ip[0], ip[3], ip[8], ip[9] = 0x45, 28, 64, udp
	copy(ip[12:], from.AsSlice())
	copy(ip[16:], second.IPv4.AsSlice())
	binary.BigEndian.PutUint16(ip[10:], frames.Checksum(ip[:20]))
	binary.BigEndian.PutUint16(ip[20:], 9)
	binary.BigEndian.PutUint16(ip[22:], 9)
	binary.BigEndian.PutUint16(ip[24:], 8)
	return slices.Concat(second.MAC, mac, []byte{8, 0}, ip)
}

// member returns the first node with an address that may move to it.
func member() Node {
	n := node(first)
	n.Moving = []netip.Addr{service}
	return n
}

// TestMovingInMemory: a node may use the address of a service only after it has told the others that it holds
// it, and no node outside of the service may.
func TestMovingInMemory(t *testing.T) {
	for what, c := range map[string]struct {
		node    Node
		frame   []byte // sent first
		allowed bool
	}{
		"holds it":               {member(), vrrpFrame(first.MAC, first.IPv4, 250, 20), true},
		"holds it, slowly":       {member(), vrrpFrame(first.MAC, first.IPv4, 250, 100), true},
		"said nothing":           {member(), udpFrame(first.MAC, first.IPv4), false},
		"resigns":                {member(), vrrpFrame(first.MAC, first.IPv4, 0, 20), false},
		"said it as another":     {member(), vrrpFrame(first.MAC, second.IPv4, 250, 20), false},
		"said it for the VIP":    {member(), vrrpFrame(first.MAC, service, 250, 20), false},
		"is no node of it":       {node(first), vrrpFrame(first.MAC, first.IPv4, 250, 20), false},
		"holds another's":        {withMoving("10.8.69.6"), vrrpFrame(first.MAC, first.IPv4, 250, 20), false},
		"holds it among several": {withMoving("10.8.69.6", "10.8.69.5"), vrrpFrame(first.MAC, first.IPv4, 250, 20), true},
	} {
		table := inMemory(t, map[string]Node{"orv1": c.node})
		passes := func(frame []byte) bool {
			return table.Run(prerouting, &nftest.Packet{In: "orv1", Frame: frame}).Verdict != "drop"
		}
		passes(c.frame)
		for name, frame := range map[string][]byte{"ARP": arpFrame(first.MAC, service), "UDP": udpFrame(first.MAC, service)} {
			if got := passes(frame); got != c.allowed {
				t.Errorf("%s: %s with the address passes: %t", what, name, got)
			}
		}
		if passes(arpFrame(second.MAC, service)) || passes(udpFrame(second.MAC, service)) {
			t.Errorf("%s: it may use the address with the MAC of another", what)
		}
		if !passes(arpFrame(first.MAC, first.IPv4)) || !passes(udpFrame(first.MAC, first.IPv4)) {
			t.Errorf("%s: it may not use its own address", what)
		}
	}
}

func withMoving(all ...string) Node {
	n := node(first)
	for _, text := range all {
		n.Moving = append(n.Moving, netip.MustParseAddr(text))
	}
	return n
}

// TestMoving: the kernel does the same, and closes the port for the address when the advertisements end.
//
// Promise (Networks): The address of a service passes only from the nodes of the service, and only
// while the node says that it holds it. With network/ports.TestMovingInMemory, test.TestService.
func TestMoving(t *testing.T) {
	if !bridged(t) {
		return
	}
	hold(t, "orv1", member())
	hold(t, "orv2", node(second))
	table := open(t)
	if got := table.Held["orv1"]; !table.Whole || !slices.Equal(got.moving, []string{string(service.AsSlice())}) {
		t.Fatalf("whole %t, held to %q", table.Whole, got)
	}
	in, _ := socket(t, "node2", unix.ETH_P_ALL)
	defer unix.Close(in)
	wait := unix.Timeval{Usec: 100_000}
	if err := unix.SetsockoptTimeval(in, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		t.Fatal(err)
	}
	out, index := socket(t, "node1", 0)
	defer unix.Close(out)
	send := func(frame []byte) {
		if err := unix.Sendto(out, frame, 0, &unix.SockaddrLinklayer{Ifindex: index, Halen: 6}); err != nil {
			t.Fatal(err)
		}
	}
	passes := func() bool {
		want := arpFrame(first.MAC, service)
		send(want)
		for b := make([]byte, 4096); ; {
			n, _, err := unix.Recvfrom(in, b, 0)
			if err != nil {
				return false
			}
			if slices.Equal(b[:n], want) {
				return true
			}
		}
	}
	if passes() {
		t.Error("it may use the address before it holds it")
	}
	send(vrrpFrame(first.MAC, first.IPv4, 250, 20))
	if !passes() {
		t.Error("it may not use the address that it holds")
	}
	for began := time.Now(); passes(); time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatal("its port stays open for the address without advertisements")
		}
	}
	send(vrrpFrame(first.MAC, first.IPv4, 250, 20))
	if !passes() {
		t.Error("it may not use the address that it holds again")
	}

	// The address is taken away from the port when the service is removed.
	hold(t, "orv1", node(first))
	if passes() {
		t.Error("it may use the address of a service that is gone")
	}
}

// TestExtend: the rules say how long they extend.
func TestExtend(t *testing.T) {
	found := 0
	for _, c := range chains {
		for _, r := range c.rules {
			if d, ok := strings.CutPrefix(r.then, extend); ok {
				found++
				if timeout, err := time.ParseDuration(d); err != nil || timeout < time.Second {
					t.Errorf("%s: %v", r.why, err)
				}
			}
		}
	}
	if found != 2 {
		t.Errorf("%d rules extend", found)
	}
}
