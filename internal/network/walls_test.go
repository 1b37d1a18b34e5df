package network

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/test/frames"
	"orrery/test/need"
)

// shut returns a network without opened ports.
func shut(n spec.Network) spec.Network {
	n.Host = ""
	return n
}

// forge makes a place send UDP datagrams with arbitrary addresses and ports.
func (p *place) forge(t *testing.T, send func(datagram func(from, to string)) error) {
	t.Helper()
	p.do(t, func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return send(func(from, to string) {
			packet, dest := udpPacket(netip.MustParseAddrPort(from), netip.MustParseAddrPort(to))
			_ = unix.Sendto(fd, packet, 0, &unix.SockaddrInet4{Addr: dest}) // packets lost by a full queue are sent again
		})
	})
}

// udpPacket returns an IPv4 packet with a datagram "forged", and its destination.
func udpPacket(from, to netip.AddrPort) ([]byte, [4]byte) {
	const text = "forged"
	b := make([]byte, 28, 28+len(text))
	source, dest := from.Addr().As4(), to.Addr().As4()
	b[0], b[8], b[9] = 0x45, 64, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(b[2:], uint16(28+len(text)))
	copy(b[12:], source[:])
	copy(b[16:], dest[:])
	binary.BigEndian.PutUint16(b[20:], from.Port())
	binary.BigEndian.PutUint16(b[22:], to.Port())
	binary.BigEndian.PutUint16(b[24:], uint16(8+len(text))) // no checksum, which UDP allows
	binary.BigEndian.PutUint16(b[10:], frames.Checksum(b[:20]))
	return append(b, text...), dest
}

// pings reports whether a place's echo request is answered.
func (p *place) pings(address string) bool {
	return p.in(func() error { return exec.Command("ping", "-n", "-c", "1", "-W", "1", address).Run() }) == nil
}

// tracked returns the connections that this namespace tracks.
func tracked(t *testing.T) []*netlink.ConntrackFlow {
	t.Helper()
	flows, err := netlink.ConntrackTableList(netlink.ConntrackTable, unix.AF_INET)
	if err != nil {
		t.Skipf("not run: connections cannot be listed: %v", err)
	}
	return flows
}

// TestNodesReachOfTheHostWhatIsOpen: a service listens at all addresses of the host, as sshd does.
//
// Promise (Networks): A node reaches only what the host opens to it, and cannot forge answers to
// the host. With network.TestAnswersCannotBeForged.
func TestNodesReachOfTheHostWhatIsOpen(t *testing.T) {
	if !sandbox(t) {
		return
	}
	world(t)
	closedQuiet, closedVenet := shut(quiet), shut(venet)
	makeAll(t, shut(cam), shut(data), closedQuiet, closedVenet, toyCam)
	cam11, data11 := newNode(t, cam, "orv1", "10.8.67.11/24"), newNode(t, data, "orv2", "10.8.68.11/24")
	toy11 := newNode(t, toyCam, "orv3", "10.99.67.11/24")
	routed := newPlace(t, site.RoutedName("karoo", "karoo", "a", "venet"), "10.8.71.11/24", "10.8.71.1")
	routed.route(t, venet, "10.8.71.11")
	hidden := newPlace(t, site.RoutedName("karoo", "karoo", "q", "quiet"), "10.8.72.11/24", "10.8.72.1")
	hidden.route(t, quiet, "10.8.72.11")

	// By default, nodes can only ping the gateway.
	cam11.misses(t, "10.8.67.1", "192.0.2.1", "10.8.68.1")
	data11.misses(t, "10.8.68.1", "192.0.2.1")
	routed.misses(t, "10.8.71.1", "192.0.2.1")
	hidden.misses(t, "10.8.72.1", "192.0.2.1")
	for p, gateway := range map[*place]string{cam11: "10.8.67.1", data11: "10.8.68.1", routed: "10.8.71.1",
		hidden: "10.8.72.1"} {
		if !p.pings(gateway) {
			t.Errorf("%s has no answer of its gateway", p.name)
		}
		if p.pings("10.99.67.1") {
			t.Errorf("%s has an answer of another site's gateway", p.name)
		}
	}
	if !cam11.pings("192.0.2.1") || data11.pings("192.0.2.1") {
		t.Error("where a way leads out, the host answers at its other addresses, and else not")
	}
	cam11.reaches(t, "192.0.2.2", "192.0.2.1")
	routed.reaches(t, "192.0.2.2", "192.0.2.1")

	// An opened port is open at the gateway and, if there is a way out, at the host's other
	// addresses.
	makeAll(t, cam, data)
	cam11.reaches(t, "10.8.67.1", "10.8.67.11")
	cam11.reaches(t, "192.0.2.1", "10.8.67.11")
	data11.reaches(t, "10.8.68.1", "10.8.68.11")
	data11.misses(t, "192.0.2.1")
	toy11.misses(t, "10.8.67.1", "10.8.68.1")
	same(t, []spec.Network{cam, data, closedQuiet, closedVenet})
	other := cam
	other.Host = "tcp/8-9,udp/7"
	makeAll(t, other)
	cam11.misses(t, "10.8.67.1", "192.0.2.1")
	// The host reaches its nodes in any case.
	if _, err := call("10.8.67.11", timeout); err != nil {
		t.Error(err)
	}
}

// TestAnswersCannotBeForged: the host waits for an answer from outside, and nodes know of it.
func TestAnswersCannotBeForged(t *testing.T) {
	if !sandbox(t) {
		return
	}
	world(t)
	for _, name := range []string{"all", "default"} {
		setting(t, "net.ipv4.conf."+name+".rp_filter", "0")
	}
	makeAll(t, cam, data, quiet)
	setting(t, "net.ipv4.conf.all.rp_filter", "2") // loose, as systemd sets it for links, so that only the rules decide
	cam11, data11 := newNode(t, cam, "orv1", "10.8.67.11/24"), newNode(t, data, "orv2", "10.8.68.11/24")
	hidden := newPlace(t, site.RoutedName("karoo", "karoo", "q", "quiet"), "10.8.72.11/24", "10.8.72.1")
	hidden.route(t, quiet, "10.8.72.11")
	for whom, waits := range map[string]string{
		"outside": "192.0.2.1:4001 192.0.2.2:53", "a node": "10.8.67.1:4002 10.8.67.12:53",
		"a node on a routed network": "10.8.72.1:4003 10.8.72.12:53",
	} {
		here, remote, _ := strings.Cut(waits, " ")
		from, to := netip.MustParseAddrPort(here), netip.MustParseAddrPort(remote)
		c, err := net.DialUDP("udp4", net.UDPAddrFromAddrPort(from), net.UDPAddrFromAddrPort(to))
		must(t, err)
		_, err = c.Write([]byte("who?"))
		must(t, err)
		for _, p := range []*place{cam11, data11, hidden} {
			if whom == "a node" && p == cam11 {
				continue // on one network, the rules of the bridge isolate nodes
			}
			p.forge(t, func(datagram func(from, to string)) error {
				for range 3 {
					datagram(remote, here)
				}
				return nil
			})
		}
		must(t, c.SetReadDeadline(time.Now().Add(unheard)))
		if n, err := c.Read(make([]byte, 16)); err == nil {
			t.Errorf("the host took %d bytes of a node for an answer of %s", n, whom)
		}
		c.Close()
	}
}

// TestConnectionsAreBounded: nodes send as much as they can to all ports, from many addresses.
//
// Promise (Networks): No network fills the kernel's connection table; the host's loopback is not
// tracked. With network.TestLoopbackIsNotTracked.
func TestConnectionsAreBounded(t *testing.T) {
	need.Integration(t) // it takes too long for a quick run
	if !sandbox(t) {
		return
	}
	world(t)
	open := cam
	open.Host = "udp/1-65535"
	for _, c := range []struct {
		n                 spec.Network
		node, gateway, to string
		most              int
	}{
		{shut(cam), "10.8.67.11", "10.8.67.1", "192.0.2.1", 0},
		{shut(data), "10.8.68.11", "10.8.68.1", "192.0.2.2", 0},
		{closed, "10.8.69.11", "10.8.69.1", "192.0.2.2", 0},
		{shut(cam), "10.8.67.11", "10.8.67.1", "192.0.2.2", maxConnections},
		{open, "10.8.67.11", "10.8.67.1", "192.0.2.1", 2 * maxConnections}, // at the gateway, and elsewhere
	} {
		makeAll(t, c.n)
		p := newPlace(t, "orv1", c.node+"/24", c.gateway)
		p.join(t, c.n.Bridge)
		if c.n.Gateway == "" {
			p.knows(t, c.gateway, bridgeMAC(c.n.Bridge))
		}
		must(t, netlink.ConntrackTableFlush(netlink.ConntrackTable))
		const each = 20_000
		p.forge(t, func(datagram func(from, to string)) error {
			for i := range each {
				at := strconv.Itoa(1024 + i)
				datagram(c.node+":"+at, c.gateway+":"+at)
				datagram(c.node+":"+at, c.to+":"+at)
				datagram(fmt.Sprintf("172.16.%d.%d:%s", i>>8, i&0xff, at), c.gateway+":"+at)
				datagram(fmt.Sprintf("172.16.%d.%d:%s", i>>8, i&0xff, at), c.to+":"+at)
			}
			return nil
		})
		time.Sleep(100 * time.Millisecond)
		got := len(tracked(t))
		t.Logf("%s to %s: %d connections after %d datagrams", c.node, c.to, got, 4*each)
		if got > c.most+16 || c.most > 0 && got < c.most/2 {
			t.Errorf("%d connections instead of %d", got, c.most)
		}
		must(t, RemoveLinks([]string{"orv1"}))
		removeAll(t, c.n)
	}
}

// TestLoopbackIsNotTracked: a host with a site that has nat, and later also with another program
// that uses NAT.
func TestLoopbackIsNotTracked(t *testing.T) {
	if !sandbox(t) {
		return
	}
	must(t, answer())
	makeAll(t, cam)
	talk := func() int {
		for range 5 {
			_, err := call("127.0.0.1", timeout)
			must(t, err)
		}
		flows := slices.DeleteFunc(tracked(t), func(f *netlink.ConntrackFlow) bool {
			return !f.Forward.SrcIP.IsLoopback() // the kernel sends its own packets over new bridges
		})
		return len(flows)
	}
	if n := talk(); n > 0 {
		t.Errorf("%d connections of the loopback are tracked", n)
	}
	same(t, []spec.Network{cam})
	theirs := &nftables.Table{Name: "netavark", Family: nftables.TableFamilyINet}
	must(t, flush(func(c *nftables.Conn) {
		c.AddTable(theirs)
		c.AddChain(&nftables.Chain{
			Name: "output", Table: theirs, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookOutput,
			Priority: nftables.ChainPriorityNATDest,
		})
	}))
	got, err := Observe("karoo")
	must(t, err)
	if len(got) != 1 || !slices.Equal(got[0].Drift, []observe.NetworkDrift{observe.RulesChanged}) {
		t.Errorf("observed %+v", got)
	}
	makeAll(t, cam)
	same(t, []spec.Network{cam})
	if n := talk(); n == 0 {
		t.Error("the loopback is not tracked, although another's table translates addresses")
	}
	must(t, flush(func(c *nftables.Conn) { c.DelTable(theirs) }))
	filter := &nftables.Table{Name: "filter", Family: nftables.TableFamilyIPv4}
	must(t, flush(func(c *nftables.Conn) {
		c.AddTable(filter)
		chain := c.AddChain(&nftables.Chain{
			Name: "INPUT", Table: filter, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookInput,
			Priority: nftables.ChainPriorityFilter,
		})
		c.AddRule(&nftables.Rule{Table: filter, Chain: chain, Exprs: []expr.Any{&expr.Counter{}}})
	}))
	makeAll(t, cam)
	if existing, err := comments(siteTable("karoo")); err != nil ||
		strings.Contains(strings.Join(existing, "\n"), "output ") {
		t.Errorf("beside another's filter the rules are %q, %v", existing, err)
	}
	must(t, flush(func(c *nftables.Conn) { c.DelTable(filter) }))
	removeAll(t, cam)
	nothingLeft(t)
}

// TestMarkOfWalls checks that the opened ports of a network are read back from its mark.
func TestMarkOfWalls(t *testing.T) {
	n := venet
	n.Host, n.Spoof, n.Metadata, n.Protocols = "tcp/1-65535,udp/53", true, true, "0x88a4,0x88f7"
	want := n
	want.MTU = 0
	if got, ok := readMark(mark(n)); !ok || got != want {
		t.Errorf("mark %q reads %+v", mark(n), got)
	}
	for _, alias := range []string{"orrery karoo cam 10.8.67.0/24 - - host=",
		"orrery karoo cam 10.8.67.0/24 - - host=tcp/x", "orrery karoo cam 10.8.67.0/24 - - spoof host=tcp/1",
		"orrery karoo cam 10.8.67.0/24 - - protocols=ptpd", "orrery karoo cam 10.8.67.0/24 - - protocols=0x0800"} {
		if n, ok := readMark(alias); ok && n.Host+n.Protocols != "" {
			t.Errorf("alias %q reads %+v", alias, n)
		}
	}
	n.Host = "everything"
	if err := check(n); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("%q is open: %v", n.Host, err)
	}
}
