package ports

import (
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"orrery/test/frames"
	"orrery/test/need"
)

// The two nodes of the tests: ports orv1 and orv2 on one bridge, with the other ends in node1 and
// node2.
var (
	first  = frames.Party{MAC: net.HardwareAddr{0xde, 0xad, 0xbe, 0xef, 0, 1}, IPv4: netip.MustParseAddr("10.8.69.11")}
	second = frames.Party{MAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, IPv4: netip.AddrFrom4([4]byte{10, 8, 69, 12})}
)

func run(t *testing.T, line string) {
	t.Helper()
	if out, err := exec.Command("sh", "-c", line).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
}

// bridged makes the bridge and the nodes in a separate network namespace, and reports whether this
// process is in it.
func bridged(t *testing.T) bool {
	t.Helper()
	if !need.Alone(t, "--net") {
		return false
	}
	build(t)
	return true
}

// build makes the bridge and the nodes.
func build(t *testing.T) {
	t.Helper()
	// Group frames go to all ports. Otherwise group membership would decide which frames arrive.
	for _, line := range []string{
		"ip link add name br0 type bridge mcast_snooping 0", "ip link set br0 up",
		"ip link add orv1 type veth peer name node1", "ip link add orv2 type veth peer name node2",
		"ip link set orv1 master br0", "ip link set orv2 master br0",
	} {
		run(t, line)
	}
	for _, name := range []string{"br0", "orv1", "orv2", "node1", "node2"} {
		// The kernel sends nothing of its own there. A kernel without IPv6 never does.
		_ = exec.Command("sysctl", "-q", "net.ipv6.conf."+name+".disable_ipv6=1").Run()
		run(t, "ip link set "+name+" up")
	}
	// The bridge learns nothing from frames with a sender elsewhere, so that all later frames
	// arrive.
	for _, port := range []string{"orv1", "orv2"} {
		run(t, "ip link set "+port+" type bridge_slave learning off")
	}
	// br_netfilter would check whether packets are well-formed, which is not tested here.
	_ = exec.Command("sh", "-c", "for f in /proc/sys/net/bridge/bridge-nf-call-*; do echo 0 >$f; done").Run()
}

// at returns addresses as prefixes.
func at(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// node returns the node for a party.
func node(p frames.Party) Node {
	return Node{MAC: p.MAC.String(), Addresses: []netip.Prefix{netip.PrefixFrom(p.IPv4, 24)}}
}

// hold adds a port with a node's identity to the table.
func hold(t *testing.T, port string, n Node) {
	t.Helper()
	table, err := Open()
	if err != nil {
		t.Skipf("not run: %v", err)
	}
	if table.Held[port], err = Identify(port, n); err == nil {
		err = table.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// socket returns a link-layer socket on a link.
func socket(t *testing.T, link string, protocol uint16) (fd, index int) {
	t.Helper()
	l, err := netlink.LinkByName(link)
	if err != nil {
		t.Fatal(err)
	}
	order := protocol>>8 | protocol<<8
	if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(order)); err != nil {
		t.Fatal(err)
	}
	index = l.Attrs().Index
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: order, Ifindex: index}); err != nil {
		t.Fatal(err)
	}
	return fd, index
}

// heard sends frames of some kinds from node1 and returns the kinds that arrive at node2.
func heard(t *testing.T, kinds []frames.Kind) []string {
	t.Helper()
	in, _ := socket(t, "node2", unix.ETH_P_ALL)
	defer unix.Close(in)
	wait := unix.Timeval{Usec: 200_000}
	if err := unix.SetsockoptTimeval(in, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		t.Fatal(err)
	}
	out, index := socket(t, "node1", 0)
	defer unix.Close(out)
	node1 := &unix.SockaddrLinklayer{Ifindex: index, Halen: 6}
	for _, k := range kinds {
		if err := unix.Sendto(out, k.Frame(first, second), 0, node1); err != nil {
			t.Fatal(k.Name, err)
		}
	}
	var names []string
	for b := make([]byte, 4096); ; {
		n, _, err := unix.Recvfrom(in, b, 0)
		if err != nil {
			return names
		}
		if name, ok := frames.Find(b[:n]); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
}

// expect fails the test for each kind of frame that passes and should not, or does not pass and
// should.
func expect(t *testing.T, kinds []frames.Kind, allowed func(frames.Kind) bool) {
	t.Helper()
	got := heard(t, kinds)
	for _, k := range kinds {
		if passes := slices.Contains(got, k.Name); passes != allowed(k) {
			t.Errorf("%-30s passes: %-5t, allowed: %t", k.Name, passes, allowed(k))
		}
	}
}

// unbridged are the kinds that no bridge forwards, since they are for the next bridge only
// (802.1D).
var unbridged = []string{"lldp", "eapol"}

// TestFrames: a node sends a frame of each kind.
//
// Promise (Networks): A node sends only what an ordinary host sends and the site file declares, as
// a machine, in quarantine, in twins, over hosts and on wires, too. With
// network/ports.TestFramesDeclared, network.TestKindsOfFrames, network.TestKindsOfFramesOfMachines,
// network.TestKindsOfFramesRouted, test.TestFrames.
func TestFrames(t *testing.T) {
	if !bridged(t) {
		return
	}
	hold(t, "orv1", node(first))
	hold(t, "orv2", node(second))
	expect(t, frames.All(), func(k frames.Kind) bool { return k.Allowed })
}

// TestFramesOfThoseNotHeld: a port that is not in the table may send anything, beside one that is.
func TestFramesOfThoseNotHeld(t *testing.T) {
	if !bridged(t) {
		return
	}
	hold(t, "orv2", node(second))
	expect(t, frames.All(), func(k frames.Kind) bool { return !slices.Contains(unbridged, k.Name) })
}

// TestFramesDeclared: a port accepts the addresses and protocols that are declared for its node,
// and not those of another.
func TestFramesDeclared(t *testing.T) {
	if !bridged(t) {
		return
	}
	declared := node(first)
	declared.Addresses, declared.Protocols = append(declared.Addresses, at("2001:db8::9/128", "fe80::1234/128")...),
		"0x88b5,0x88f7"
	hold(t, "orv1", declared)
	hold(t, "orv2", node(second))
	expect(t, frames.All(), func(k frames.Kind) bool {
		return k.Allowed || slices.Contains([]string{"ipv6-global", "ptp", "experimental"}, k.Name)
	})

	// Entries are read from the kernel as written, even after another port changes.
	table, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	got := table.Held["orv1"]
	six := string(netip.MustParseAddr("fe80::1234").AsSlice())
	if !table.Whole || !got.Allows("0x88b5,0x88f7") || got.Allows("0x88f7") || got.Allows("") ||
		!slices.Contains(got.sixes, six) {
		t.Errorf("held to %q", got)
	}
	if other := table.Held["orv2"]; !other.Allows("") {
		t.Errorf("the other is held to %q", other)
	}
	if table.Held["orv1"], err = Identify("orv1", node(first)); err == nil {
		err = table.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
	expect(t, frames.All(), func(k frames.Kind) bool { return k.Allowed })
}

// TestIdentify refuses identities that no table could contain.
func TestIdentify(t *testing.T) {
	for what, n := range map[string]Node{
		"no MAC":          {Addresses: at("10.8.69.11/24")},
		"a long MAC":      {MAC: "02:00:00:00:00:00:00:01", Addresses: at("10.8.69.11/24")},
		"no address":      {MAC: "02:00:00:00:00:01", Addresses: []netip.Prefix{{}}},
		"no IPv4":         {MAC: "02:00:00:00:00:01", Addresses: at("fe80::1/64")},
		"no protocol":     {MAC: "02:00:00:00:00:01", Addresses: at("10.8.69.11/24"), Protocols: "ptpd"},
		"IP as protocol":  {MAC: "02:00:00:00:00:01", Addresses: at("10.8.69.11/24"), Protocols: "0x86dd"},
		"a protocol more": {MAC: "02:00:00:00:00:01", Addresses: at("10.8.69.11/24"), Protocols: "0x88f7,"},
	} {
		if i, err := Identify("orv1", n); err == nil {
			t.Errorf("%s: %q", what, i)
		}
	}
}
