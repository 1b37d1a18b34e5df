package network

import (
	"bytes"
	"cmp"
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/site/spec"
	"orrery/test/need"
)

// twinOf returns a network as a twin has it, closed.
func twinOf(twin string, n spec.Network) spec.Network {
	return declared("karoo."+twin, n.Name, n.Subnet, "", false)
}

// routerOf returns a twin's network that may reach the outside.
func routerOf(twin string, n spec.Network) spec.Network {
	o := declared("karoo."+twin, n.Name, n.Subnet, n.Gateway, true)
	o.Router, o.Host = true, ""
	return o
}

// newNode adds a node to a network. Its default route leads to the network's gateway or, if it has
// none, to that of its original.
func newNode(t *testing.T, n spec.Network, link, address string) *place {
	t.Helper()
	by, _, _ := strings.Cut(cmp.Or(n.Gateway, cam.Gateway), "/")
	p := newPlace(t, link, address, by)
	p.join(t, n.Bridge)
	p.do(t, answer)
	return p
}

// world adds an outside machine to this host and returns it.
func world(t *testing.T) *place {
	t.Helper()
	setting(t, "net.ipv4.ip_forward", "1")
	outside := newPlace(t, "up0", "192.0.2.2/24", "192.0.2.1")
	outside.do(t, answer)
	uplink, err := netlink.LinkByName("up0")
	must(t, err)
	address, err := netlink.ParseAddr("192.0.2.1/24")
	must(t, err)
	must(t, netlink.AddrAdd(uplink, address))
	by, err := netlink.ParseAddr("192.0.2.2/32")
	must(t, err)
	must(t, netlink.RouteAdd(&netlink.Route{Gw: by.IP})) // the host's default route
	must(t, answer())
	return outside
}

// capture reads the frames that pass a link, until the returned function is called, which returns
// all of them.
func capture(t *testing.T, link string) func() [][]byte {
	t.Helper()
	l, err := netlink.LinkByName(link)
	must(t, err)
	all := uint16(unix.ETH_P_ALL)>>8 | uint16(unix.ETH_P_ALL)<<8
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(all))
	must(t, err)
	must(t, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: l.Attrs().Index}))
	must(t, unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP,
		&unix.PacketMreq{Ifindex: int32(l.Attrs().Index), Type: unix.PACKET_MR_PROMISC}))
	must(t, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 50_000}))
	return func() [][]byte {
		defer unix.Close(fd)
		var frames [][]byte
		for {
			frame := make([]byte, 2048)
			n, _, err := unix.Recvfrom(fd, frame, 0)
			if err != nil {
				return frames
			}
			frames = append(frames, frame[:n])
		}
	}
}

// mac returns the hardware address of a place's link.
func (p *place) mac(t *testing.T) (mac net.HardwareAddr) {
	t.Helper()
	p.do(t, func() error {
		link, err := netlink.LinkByName("eth0")
		mac = link.Attrs().HardwareAddr
		return err
	})
	return mac
}

// knows adds a neighbour entry to a place, so that it need not ask for the address.
func (p *place) knows(t *testing.T, address string, mac net.HardwareAddr) {
	t.Helper()
	p.do(t, func() error {
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		return netlink.NeighSet(&netlink.Neigh{
			LinkIndex: link.Attrs().Index, State: netlink.NUD_PERMANENT, IP: net.ParseIP(address), HardwareAddr: mac,
		})
	})
}

// TestClosedTwins: production and two twins of it have the same addresses.
func TestClosedTwins(t *testing.T) {
	if !sandbox(t) {
		return
	}
	outside := world(t)
	dev1, dev2 := twinOf("dev1", cam), twinOf("dev2", cam)
	makeAll(t, dev1, cam, data, dev2, twinOf("dev1", data), quarantined) // before and after production
	prod11, prod12 := newNode(t, cam, "orv1", "10.8.67.11/24"), newNode(t, cam, "orv2", "10.8.67.12/24")
	one11, one31 := newNode(t, dev1, "orv3", "10.8.67.11/24"), newNode(t, dev1, "orv4", "10.8.67.31/24")
	two11, two32 := newNode(t, dev2, "orv5", "10.8.67.11/24"), newNode(t, dev2, "orv6", "10.8.67.32/24")
	newNode(t, data, "orv7", "10.8.68.11/24")
	frames := capture(t, cam.Bridge)

	// Each works on its own.
	prod12.reaches(t, "10.8.67.11", "10.8.67.12")
	prod11.reaches(t, "10.8.67.1", "10.8.67.11")
	prod11.reaches(t, "192.0.2.2", "192.0.2.1")
	one31.reaches(t, "10.8.67.11", "10.8.67.31")
	one11.reaches(t, "10.8.67.31", "10.8.67.11")
	two32.reaches(t, "10.8.67.11", "10.8.67.32")
	// None reaches another, its gateway, the host or the outside.
	one31.misses(t, "10.8.67.1", "10.8.67.12", "10.8.67.32", "10.8.68.1", "10.8.68.11", "192.0.2.1", "192.0.2.2")
	two32.misses(t, "10.8.67.1", "10.8.67.12", "10.8.67.31", "10.8.68.1", "10.8.68.11", "192.0.2.1", "192.0.2.2")
	prod12.misses(t, "10.8.67.31", "10.8.67.32")
	outside.misses(t, "10.8.67.31", "10.8.67.32")
	if _, err := call("10.8.67.31", unheard); err == nil {
		t.Error("the host reaches a node of a twin")
	}
	// Not even with knowledge of the host's addresses.
	for _, p := range []*place{one31, two32, one11} {
		bridge := map[*place]string{one31: dev1.Bridge, one11: dev1.Bridge, two32: dev2.Bridge}[p]
		p.knows(t, "10.8.67.1", bridgeMAC(bridge))
		p.misses(t, "10.8.67.1", "10.8.68.1", "10.8.68.11", "192.0.2.1", "192.0.2.2")
		p.says(t, "192.0.2.2")
	}

	twins := []net.HardwareAddr{one11.mac(t), one31.mac(t), two11.mac(t), two32.mac(t)}
	seen := map[bool]int{}
	for _, frame := range frames() {
		seen[slices.ContainsFunc(twins, func(m net.HardwareAddr) bool {
			return bytes.Equal(frame[:6], m) || bytes.Equal(frame[6:12], m)
		})]++
	}
	if seen[true] > 0 || seen[false] == 0 {
		t.Errorf("on the bridge of production there were %d frames of twins and %d others", seen[true], seen[false])
	}
	flows, err := netlink.ConntrackTableList(netlink.ConntrackTable, unix.AF_INET)
	if err != nil {
		t.Logf("connections not looked at: %v", err)
	}
	for _, f := range flows {
		if source := f.Forward.SrcIP.String(); source == "10.8.67.31" || source == "10.8.67.32" {
			t.Errorf("the host tracks a connection of a twin: %s", f)
		}
	}
	same(t, []spec.Network{cam, data, quarantined})
	removeAll(t, dev1, dev2, twinOf("dev1", data), quarantined, cam, data)
	must(t, RemoveLinks([]string{"orv1", "orv2", "orv3", "orv4", "orv5", "orv6", "orv7"}))
	nothingLeft(t)
}

// TestRouters: twins reach the outside by a gateway address that production's bridge also has.
func TestRouters(t *testing.T) {
	if !sandbox(t) {
		return
	}
	outside := world(t)
	one, two, oneClosed := routerOf("dev1", cam), routerOf("dev2", cam), twinOf("dev1", closed)
	oneData := routerOf("dev1", data)
	makeAll(t, one, cam, data, two, oneClosed, oneData, toyCam)
	prod11 := newNode(t, cam, "orv1", "10.8.67.11/24")
	newNode(t, data, "orv2", "10.8.68.12/24")
	one11, one31 := newNode(t, one, "orv3", "10.8.67.11/24"), newNode(t, one, "orv4", "10.8.67.31/24")
	two11 := newNode(t, two, "orv5", "10.8.67.11/24")
	data11 := newNode(t, oneData, "orv6", "10.8.68.11/24")
	toy11 := newNode(t, toyCam, "orv7", "10.99.67.11/24")
	frames := capture(t, cam.Bridge)

	for _, p := range []*place{prod11, one11, one31, two11, data11, toy11} {
		p.reaches(t, "192.0.2.2", "192.0.2.1")
	}
	one31.reaches(t, "10.8.67.11", "10.8.67.31")
	prod11.reaches(t, "10.8.67.1", "10.8.67.11")
	// Production, other sites, the host and other networks of the twin are not reached, and neither
	// is the twin.
	for _, p := range []*place{one31, two11} {
		p.misses(t, "10.8.67.12", "10.8.67.1", "10.8.68.1", "10.8.68.12", "10.8.69.11", "10.99.67.1", "10.99.67.11",
			"192.0.2.1")
	}
	data11.misses(t, "10.8.67.11", "10.8.67.1", "192.0.2.1")
	pairs := map[string]pair{}
	for _, n := range []spec.Network{one, two, oneData} {
		link, err := netlink.LinkByName(uplinkName(n))
		must(t, err)
		p, ok := pairOf(link)
		if !ok {
			t.Errorf("%s has no two addresses", uplinkName(n))
		}
		pairs[p.host.String()] = p
		for _, other := range []*place{prod11, toy11, outside} {
			other.misses(t, p.router.Addr().String())
		}
	}
	if len(pairs) != 3 {
		t.Errorf("routers share addresses: %v", pairs)
	}
	outside.misses(t, "10.8.67.31")
	// Packets to addresses of its own networks that are sent to the gateway do not reach others
	// with these addresses.
	next := outside.hears(t)
	one31.says(t, "10.8.69.9")
	one31.says(t, "192.0.2.2")
	if from := next(); from != "192.0.2.1" {
		t.Errorf("heard %s outside", from)
	}
	for _, frame := range frames() {
		for _, p := range []*place{one11, one31, two11} {
			if bytes.Contains(frame[:12], p.mac(t)) {
				t.Errorf("a frame of a twin is on the bridge of production: % x", frame[:34])
			}
		}
	}
	same(t, []spec.Network{one, oneClosed, oneData})
	makeAll(t, one, two, oneClosed, oneData)
	same(t, []spec.Network{one, oneClosed, oneData})
	one11.reaches(t, "192.0.2.2", "192.0.2.1")
	removeAll(t, two)
	one11.reaches(t, "192.0.2.2", "192.0.2.1")
	makeAll(t, twinOf("dev1", cam)) // and then it is closed
	one11.misses(t, "192.0.2.2")
	removeAll(t, one, oneClosed, oneData, cam, data, toyCam)
	must(t, RemoveLinks([]string{"orv1", "orv2", "orv3", "orv4", "orv5", "orv6", "orv7"}))
	nothingLeft(t)
}

func TestMakeBringsBackARouter(t *testing.T) {
	if !sandbox(t) {
		return
	}
	world(t)
	n := routerOf("dev1", cam)
	n.MTU = 1400
	makeAll(t, cam, n)
	same(t, []spec.Network{n})
	node := newNode(t, n, "orv1", "10.8.67.11/24")
	router := func(what func() error) func() error {
		return func() error {
			space, err := os.Open(filepath.Join(namespaceDir, routerName(n)))
			if err != nil {
				return err
			}
			defer space.Close()
			return host.InNetNS(space, what)
		}
	}
	on := func(name string, change func(netlink.Link) error) func() error {
		return func() error {
			link, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			return change(link)
		}
	}
	address, err := netlink.ParseAddr("10.8.67.1/24")
	must(t, err)
	for what, change := range map[string]func() error{
		"no uplink":   on(uplinkName(n), netlink.LinkDel),
		"uplink down": on(uplinkName(n), netlink.LinkSetDown),
		"no port":     on(portName(n), netlink.LinkDel),
		"port loose":  on(portName(n), netlink.LinkSetNoMaster),
		"no router": func() error {
			return removeNamespace(routerName(n), routerMark(n))
		},
		"no mount": func() error {
			return unix.Unmount(filepath.Join(namespaceDir, routerName(n)), unix.MNT_DETACH)
		},
		"no forwarding": router(func() error { return os.WriteFile(forwarding, []byte("0"), 0o644) }),
		"no rules":      router(func() error { return flush(func(c *nftables.Conn) { c.DelTable(routerTable) }) }),
		"no gateway":    router(on(gate, func(l netlink.Link) error { return netlink.AddrDel(l, address) })),
		"exit down":     router(on(exit, netlink.LinkSetDown)),
		"no route":      router(func() error { return netlink.RouteDel(&netlink.Route{Dst: allIPv4()}) }),
		"host's rules":  func() error { return flush(func(c *nftables.Conn) { c.DelTable(siteTable(n.Site)) }) },
		"bridge address": on(n.Bridge, func(l netlink.Link) error {
			return netlink.AddrAdd(l, &netlink.Addr{IPNet: mustNet("10.8.67.2/24")})
		}),
	} {
		t.Run(what, func(t *testing.T) {
			must(t, change())
			got, err := Observe(n.Site)
			must(t, err)
			if len(got) == 1 && got[0].Matches(&n) {
				t.Error("the change was not observed")
			}
			makeAll(t, n)
			same(t, []spec.Network{n})
			node.reaches(t, "192.0.2.2", "192.0.2.1")
		})
	}
	removeAll(t, n, cam)
	must(t, RemoveLinks([]string{"orv1"}))
	nothingLeft(t)
}

func mustNet(text string) *net.IPNet {
	n, err := netlink.ParseIPNet(text)
	if err != nil {
		panic(err)
	}
	return n
}

func TestRoutersLeaveOthersAlone(t *testing.T) {
	if !sandbox(t) {
		return
	}
	n := routerOf("dev1", cam)
	for what, make := range map[string]func(){
		uplinkName(n): func() {
			must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: uplinkName(n)}, PeerName: "foreign"}))
		},
		routerName(n): func() {
			space, err := openNamespace(routerName(n), "mine")
			must(t, err)
			space.Close()
		},
	} {
		make()
		if err := Make(context.Background(), n, noNodes); err == nil ||
			!strings.Contains(err.Error(), what+" that is not Orrery's") {
			t.Errorf("%s is taken: %v", what, err)
		}
		removeAll(t, n)
		if _, err := netlink.LinkByName(what); err != nil && !isNamespace(filepath.Join(namespaceDir, what)) {
			t.Errorf("%s, which is not Orrery's, is gone", what)
		}
		if link, err := netlink.LinkByName(what); err == nil {
			must(t, netlink.LinkDel(link))
		}
		must(t, removeNamespace(routerName(n), "mine"))
	}
	nothingLeft(t)
}

func TestChoosePair(t *testing.T) {
	if !sandbox(t) {
		return
	}
	n := routerOf("dev1", cam)
	makeAll(t, n)
	pairNow := func() pair {
		link, err := netlink.LinkByName(uplinkName(n))
		must(t, err)
		p, ok := pairOf(link)
		if !ok {
			t.Fatal("no pair")
		}
		return p
	}
	before := pairNow()
	makeAll(t, n)
	if after := pairNow(); after != before {
		t.Errorf("changed from %v to %v", before, after)
	}
	// Another program has started to use it.
	lo, err := netlink.LinkByName("lo")
	must(t, err)
	must(t, netlink.AddrAdd(lo, &netlink.Addr{IPNet: mustNet(before.router.Addr().String() + "/32")}))
	makeAll(t, n)
	if after := pairNow(); after == before || after.host.Overlaps(before.host) ||
		!transferRange.Contains(after.router.Addr()) {
		t.Errorf("chose %v, where %v is taken", after, before)
	}
	same(t, []spec.Network{n})
	if p := newPair(netip.MustParsePrefix("169.254.9.4/31")); p.router.String() != "169.254.9.5/31" {
		t.Errorf("the router has %s", p.router)
	}
}

func TestRouterKilledAtAnyMoment(t *testing.T) {
	need.Integration(t) // it takes too long for a quick run
	n := routerOf("dev1", cam)
	killed(t, func(t *testing.T) {
		makeAll(t, n)
		removeAll(t, n)
	}, 30, 60*time.Millisecond, func(t *testing.T, again bool) {
		if again {
			makeAll(t, n)
			same(t, []spec.Network{n})
			return
		}
		removeAll(t, n)
		must(t, Sweep(context.Background()))
		nothingLeft(t)
	})
}
