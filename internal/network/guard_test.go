package network

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/network/ports"
	"orrery/internal/observe"
	"orrery/internal/site/spec"
	"orrery/test/frames"
	"orrery/test/need"
)

// guarded adds a node with a guarded port to a network, and returns both.
func guarded(t *testing.T, n spec.Network, link, address string) (*place, Port) {
	t.Helper()
	p := newPlace(t, link, address, "")
	p.join(t, n.Bridge)
	p.do(t, answer)
	return p, p.port(t, n.Bridge)
}

// A frame is a frame that a node sends.
type frame struct {
	from, to net.HardwareAddr
	tags     []uint16 // VLAN tags: the protocol of each
	proto    uint16
	payload  []byte
}

func (f frame) bytes() []byte {
	b := slices.Concat(f.to, f.from)
	for i, tag := range f.tags {
		b = binary.BigEndian.AppendUint16(b, tag)
		b = binary.BigEndian.AppendUint16(b, uint16(i+5))
	}
	b = append(binary.BigEndian.AppendUint16(b, f.proto), f.payload...)
	return append(b, make([]byte, max(0, 60-len(b)))...)
}

// injects makes a place send frames unchanged.
func (p *place) injects(t *testing.T, frames ...frame) {
	t.Helper()
	var all [][]byte
	for _, f := range frames {
		all = append(all, f.bytes())
	}
	p.raw(t, all...)
}

func ipOf(from, to string) []byte {
	b, _ := udpPacket(netip.MustParseAddrPort(from), netip.MustParseAddrPort(to))
	return b
}

// arpOf returns an unsolicited ARP answer, or a request.
func arpOf(op byte, mac net.HardwareAddr, address, target string) []byte {
	b := []byte{0, 1, 8, 0, 6, 4, 0, op}
	sender, asked := netip.MustParseAddr(address).As4(), netip.MustParseAddr(target).As4()
	return slices.Concat(b, mac, sender[:], make([]byte, 6), asked[:])
}

// TestNodesSendAsThemselves: a node sends everything that it should not, to another node and to
// all.
//
// Promise (Networks): A node sends only as itself, on whatever bridge, even during a switch. With
// network.TestNothingSlipsThroughASwitch, network/ports.TestFrames.
func TestNodesSendAsThemselves(t *testing.T) {
	if !sandboxOfRoot(t) {
		return
	}
	makeAll(t, closed, quarantined)
	bad, port := guarded(t, closed, "orv1", "10.8.69.11/24")
	good, _ := guarded(t, closed, "orv2", "10.8.69.12/24")
	self, other, fake := bad.mac(t), good.mac(t), net.HardwareAddr{2, 0, 0, 0, 0, 9}
	all := net.HardwareAddr{255, 255, 255, 255, 255, 255}
	ip := func(f, t string) []byte { return ipOf(f+":9", t+":9") }
	const me, you, third = "10.8.69.11", "10.8.69.12", "10.8.69.13"
	own6 := frames.Party{MAC: self}.LinkLocal()
	good6 := slices.Concat([]byte{0x60, 0, 0, 0, 0, 0, 59, 64}, own6.AsSlice(), net.ParseIP("fe80::1"))
	cases := map[string]struct {
		frame
		passes bool
	}{
		"as itself":                     {frame{self, other, nil, unix.ETH_P_IP, ip(me, you)}, true},
		"to all":                        {frame{self, all, nil, unix.ETH_P_IP, ip(me, "255.255.255.255")}, true},
		"ARP as itself":                 {frame{self, all, nil, unix.ETH_P_ARP, arpOf(1, self, me, you)}, true},
		"ARP that looks whether one is": {frame{self, all, nil, unix.ETH_P_ARP, arpOf(1, self, "0.0.0.0", me)}, true},
		"IPv6":                          {frame{self, other, nil, unix.ETH_P_IPV6, good6}, true},
		"another MAC":                   {frame{fake, other, nil, unix.ETH_P_IP, ip(me, you)}, false},
		"the MAC of the other":          {frame{other, all, nil, unix.ETH_P_IP, ip(me, you)}, false},
		"IPv6 with another MAC":         {frame{fake, other, nil, unix.ETH_P_IPV6, good6}, false},
		"another address":               {frame{self, other, nil, unix.ETH_P_IP, ip(third, you)}, false},
		"the address of the other":      {frame{self, other, nil, unix.ETH_P_IP, ip(you, you)}, false},
		"no address":                    {frame{self, all, nil, unix.ETH_P_IP, ip("0.0.0.0", "255.255.255.255")}, false},
		"ARP for the other":             {frame{self, all, nil, unix.ETH_P_ARP, arpOf(2, self, you, third)}, false},
		"ARP for the gateway":           {frame{self, all, nil, unix.ETH_P_ARP, arpOf(2, self, "10.8.69.1", you)}, false},
		"ARP with another MAC in it":    {frame{self, all, nil, unix.ETH_P_ARP, arpOf(2, fake, me, you)}, false},
		"a question with another MAC":   {frame{self, all, nil, unix.ETH_P_ARP, arpOf(1, fake, "0.0.0.0", you)}, false},
		"a VLAN": {frame{self, other, []uint16{unix.ETH_P_8021Q}, unix.ETH_P_IP, ip(me, you)},
			false},
		"a VLAN, and another address": {frame{self, other, []uint16{unix.ETH_P_8021Q}, unix.ETH_P_IP, ip(third, you)},
			false},
		"a VLAN of a provider": {frame{self, other, []uint16{unix.ETH_P_8021AD}, unix.ETH_P_IP, ip(me, you)},
			false},
		"a VLAN in a VLAN": {frame{self, other, []uint16{unix.ETH_P_8021AD, unix.ETH_P_8021Q}, unix.ETH_P_IP,
			ip(me, you)}, false},
		"a VLAN in a VLAN as ARP of one": {frame{self, all, []uint16{unix.ETH_P_8021Q, unix.ETH_P_8021Q}, unix.ETH_P_ARP,
			arpOf(2, self, you, third)}, false},
		"a VLAN in a VLAN of the old way": {frame{self, other, []uint16{unix.ETH_P_QINQ1}, unix.ETH_P_IP, ip(me, you)},
			false},
	}
	hears := func(f frame) bool {
		var seen func() [][]byte
		must(t, good.in(func() error { seen = capture(t, "eth0"); return nil }))
		// So that the bridge learns where it is.
		good.injects(t, frame{other, all, nil, unix.ETH_P_ARP, arpOf(2, other, you, you)})
		bad.injects(t, f)
		// The kernel strips the first tag into metadata, and the next header decides.
		want := f.payload
		return slices.ContainsFunc(seen(), func(b []byte) bool {
			return len(b) > 14 &&
				strings.Contains(string(b[12:]), string(want))
		})
	}
	for what, c := range cases {
		if got := hears(c.frame); got != c.passes {
			t.Errorf("%s: passes %t, want %t", what, got, c.passes)
		}
	}
	good.reaches(t, me, you)
	bad.reaches(t, you, me)

	// The same holds on another bridge, and with a link that is made again.
	must(t, MoveLinks(context.Background(), []Move{{"orv1", quarantined.Bridge}, {"orv2", quarantined.Bridge}}))
	if hears(cases["another address"].frame) {
		t.Error("on another bridge the port is not guarded")
	}
	if !hears(cases["as itself"].frame) {
		t.Error("on another bridge the port is shut")
	}
	must(t, MoveLinks(context.Background(), []Move{{"orv1", closed.Bridge}, {"orv2", closed.Bridge}}))

	// spoof releases the ports of its network, and no others.
	free := closed
	free.Spoof = true
	makeAll(t, free)
	same(t, []spec.Network{free, quarantined})
	for what, c := range cases {
		if !hears(c.frame) {
			t.Errorf("%s: does not pass, although the network lets its nodes send as others", what)
		}
	}
	makeAll(t, closed)
	seen, err := Observe("karoo")
	must(t, err)
	if !slices.ContainsFunc(seen, func(n observe.Network) bool {
		return n.Bridge == closed.Bridge && slices.Equal(n.Drift, []observe.NetworkDrift{observe.PortsOpen})
	}) {
		t.Errorf("the ports are held: %+v", seen)
	}
	must(t, AddAntiSpoof(context.Background(), []Port{port}))
	if hears(cases["another address"].frame) {
		t.Error("the port is not guarded again")
	}
	must(t, RemoveLinks([]string{"orv1", "orv2"}))
	removeAll(t, closed, quarantined)
	nothingLeft(t)
}

// TestGuardsAreObserved removes the guards of a port, partly and completely.
//
// Promise (Networks): Changes to rules or sets that guard ports are detected.
func TestGuardsAreObserved(t *testing.T) {
	if !sandbox(t) {
		return
	}
	makeAll(t, closed)
	_, port := guarded(t, closed, "orv1", "10.8.69.11/24")
	other := Port{Link: "orv9", Bridge: closed.Bridge, MAC: "02:00:00:00:00:07", Addresses: at("10.8.69.19/24")}
	must(t, AddAntiSpoof(context.Background(), []Port{other}))
	table := &nftables.Table{Name: "orrery-ports", Family: nftables.TableFamilyBridge}
	chain := &nftables.Chain{Name: prerouting, Table: table}
	for what, change := range map[string]func(c *nftables.Conn){
		"no table":   func(c *nftables.Conn) { c.DelTable(table) },
		"no rules":   func(c *nftables.Conn) { c.FlushTable(table) },
		"no port":    func(c *nftables.Conn) { c.FlushSet(&nftables.Set{Table: table, Name: "held"}) },
		"no address": func(c *nftables.Conn) { c.FlushSet(&nftables.Set{Table: table, Name: "addresses"}) },
		"no MAC":     func(c *nftables.Conn) { c.FlushSet(&nftables.Set{Table: table, Name: "macs"}) },
		"no IPv6":    func(c *nftables.Conn) { c.FlushSet(&nftables.Set{Table: table, Name: "own6"}) },
		"another MAC": func(c *nftables.Conn) {
			key := append(make([]byte, 16), 2, 0, 0, 0, 0, 9, 0, 0)
			copy(key, port.Link)
			macs := &nftables.Set{Table: table, Name: "macs", Concatenation: true,
				KeyType: nftables.MustConcatSetType(nftables.TypeIFName, nftables.TypeEtherAddr)}
			must(t, c.SetAddElements(macs, []nftables.SetElement{{Key: key}}))
		},
		"another protocol": func(c *nftables.Conn) {
			key := append(make([]byte, 16), 0x88, 0xf7, 0, 0)
			copy(key, port.Link)
			protocols := &nftables.Set{Table: table, Name: "protocols", Concatenation: true,
				KeyType: nftables.MustConcatSetType(nftables.TypeIFName, nftables.TypeEtherType)}
			must(t, c.SetAddElements(protocols, []nftables.SetElement{{Key: key}}))
		},
		"no chain": func(c *nftables.Conn) { c.FlushChain(chain); c.DelChain(chain) },
	} {
		same(t, []spec.Network{closed})
		must(t, flush(change))
		got, err := Observe("karoo")
		must(t, err)
		if len(got) != 1 || !slices.Equal(got[0].Drift, []observe.NetworkDrift{observe.PortsOpen}) {
			t.Errorf("%s: observed %+v", what, got)
		}
		must(t, Make(t.Context(), closed, func() ([]Port, error) { return []Port{port, other}, nil }))
	}
	removeAll(t, closed) // although orv9 was not released
	must(t, RemoveLinks([]string{"orv1"}))
	nothingLeft(t)
}

// TestGuardsOfMany guards more ports than fit into one message, from several processes at once, and
// removes those of one site.
func TestGuardsOfMany(t *testing.T) {
	if !sandbox(t) {
		return
	}
	makeAll(t, closed)
	const sides, each = 4, 300
	port := func(side, i int) Port {
		n := side*each + i
		return Port{Site: "karoo" + itoa(side), Link: "orv" + string(rune('a'+side)) + "000" + itoa(i), Bridge: closed.Bridge,
			MAC:       net.HardwareAddr{2, 0, 0, 0, byte(n >> 8), byte(n)}.String(),
			Addresses: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 9, byte(n >> 8), byte(n)}), 16)}}
	}
	guard := func(first, count int) {
		var wait sync.WaitGroup
		for side := range sides {
			wait.Go(func() {
				var some []Port
				for i := range count {
					some = append(some, port(side, first+i))
				}
				if err := AddAntiSpoof(context.Background(), some); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
	}
	guard(0, each-20)
	for i := range 20 {
		guard(each-20+i, 1)
	}
	held := func(want int) {
		t.Helper()
		g, err := ports.Open()
		must(t, err)
		if len(g.Held) != want || !g.Whole {
			t.Errorf("%d ports are held, not %d; whole: %t", len(g.Held), want, g.Whole)
		}
	}
	held(sides * each)
	must(t, RemoveAntiSpoof(t.Context(), "karoo001", []Port{port(1, 7), port(2, 8)}))
	held((sides-1)*each + 1)
	must(t, RemoveAntiSpoof(t.Context(), "karoo001", nil))
	held((sides - 1) * each)
	removeAll(t, closed)
	nothingLeft(t)
}

// TestGuardsWait: nodes that start do not wait for one another, but for processes that make or
// remove networks.
func TestGuardsWait(t *testing.T) {
	if !sandbox(t) {
		return
	}
	makeAll(t, closed)
	one := []Port{{Link: "orv1", Bridge: closed.Bridge, MAC: "02:00:00:00:00:01", Addresses: at("10.8.69.11/24")}}
	two := []Port{{Link: "orv2", Bridge: closed.Bridge, MAC: "02:00:00:00:00:02", Addresses: at("10.8.69.12/24")}}
	must(t, AddAntiSpoof(t.Context(), one))
	unlock, err := lock(t.Context(), host.Shared)
	must(t, err)
	must(t, AddAntiSpoof(t.Context(), two))
	unlock()
	unlock, err = lock(t.Context(), host.Exclusive)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := AddAntiSpoof(ctx, two); err == nil {
		t.Error("a port was guarded while another process changes networks")
	}
	unlock()
	changed := []Port{{Link: "orv1", Bridge: closed.Bridge, MAC: "02:00:00:00:00:01", Addresses: at("10.8.69.99/24")}}
	must(t, AddAntiSpoof(t.Context(), changed))
	for address, want := range map[string][]Port{"as guarded last": changed, "another port": two} {
		if ok, err := tryAddAntiSpoof(want); !ok || err != nil {
			t.Errorf("%s: held: %t, %v", address, ok, err)
		}
	}
	if ok, err := tryAddAntiSpoof(one); ok || err != nil {
		t.Errorf("a port is held to its former address: %t, %v", ok, err)
	}
}

// TestGuardsSeen: a reader sees the table in one consistent state while others guard their ports.
func TestGuardsSeen(t *testing.T) {
	need.Integration(t) // it takes too long for a quick run
	if !sandbox(t) {
		return
	}
	makeAll(t, closed)
	port := func(n byte) Port {
		return Port{Site: itoa(int(n)), Link: "orva" + itoa(int(n)), Bridge: closed.Bridge,
			MAC:       net.HardwareAddr{2, 0, 0, 0, 0, n}.String(),
			Addresses: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 9, 0, n}), 16)}}
	}
	must(t, AddAntiSpoof(t.Context(), []Port{port(1)}))
	var changing sync.WaitGroup
	changing.Go(func() {
		for range 200 {
			err := AddAntiSpoof(context.Background(), []Port{port(2)})
			if err = errors.Join(err, RemoveAntiSpoof(context.Background(), port(2).Site, nil)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	done := make(chan struct{})
	go func() { changing.Wait(); close(done) }()
	for looks := 0; ; looks++ {
		select {
		case <-done:
			t.Logf("looked %d times", looks)
			removeAll(t, closed)
			nothingLeft(t)
			return
		default:
		}
		g, err := ports.Open()
		must(t, err)
		if _, held := g.Held[port(1).Link]; !held || !g.Whole {
			t.Fatalf("after %d looks, the port is held: %v, and the table whole: %v", looks, held, g.Whole)
		}
	}
}

func itoa(i int) string {
	return string([]byte{byte('0' + i/100), byte('0' + i/10%10), byte('0' + i%10)})
}

// A turn is the time during which a release is live: from the start of the switch to it until the
// next release is live.
type turn struct {
	live         string
	begun, ended time.Time
}

// TestNothingSlipsThroughASwitch: the nodes of two releases at the same address send continuously
// while they change places repeatedly. The gateway receives packets of a release only from the
// times when it was live.
//
// Promise (Networks): At no moment of a switch do packets of nodes that are not live pass; VLAN
// tags, and forged sources on routed networks, are dropped. With network.TestNodesSendAsThemselves,
// network.TestAnswersCannotBeForged.
func TestNothingSlipsThroughASwitch(t *testing.T) {
	if !sandboxOfRoot(t) {
		return
	}
	open := cam
	open.Host = "udp/" + port
	makeAll(t, open, quarantined)
	places := map[string]*place{}
	for release, on := range map[string]spec.Network{"orv1": cam, "orv2": quarantined} {
		p := newPlace(t, release, "10.8.67.11/24", "10.8.67.1")
		p.knows(t, "10.8.67.1", bridgeMAC(cam.Bridge))
		p.join(t, on.Bridge)
		places[release] = p
	}

	c, err := net.ListenPacket("udp4", "10.8.67.1:"+port)
	must(t, err)
	// A packet passed the bridge at some time between these. On a busy machine it may wait in the queue of its
	// link, and its reader may be late.
	type heard struct {
		release    string
		sent, read time.Time
	}
	var all []heard
	done := make(chan bool)
	go func() {
		defer close(done)
		for b := make([]byte, 64); ; {
			n, _, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			release, sent, _ := strings.Cut(string(b[:n]), " ")
			nanoseconds, _ := strconv.ParseInt(sent, 10, 64)
			all = append(all, heard{release, time.Unix(0, nanoseconds), time.Now()})
		}
	}()
	var stop atomic.Bool
	var senders sync.WaitGroup
	for release, p := range places {
		senders.Go(func() {
			_ = p.in(func() error {
				s, err := net.Dial("udp4", "10.8.67.1:"+port)
				for err == nil && !stop.Load() {
					_, _ = fmt.Fprintf(s, "%s %d", release, time.Now().UnixNano())
					time.Sleep(50 * time.Microsecond)
				}
				return err
			})
		})
	}
	turns := []turn{{live: "orv1", begun: time.Now()}}
	for i := range 40 {
		time.Sleep(15 * time.Millisecond)
		live, other := "orv1", "orv2"
		if i%2 == 0 {
			live, other = other, live
		}
		at := turn{live: live, begun: time.Now()}
		must(t, MoveLinks(context.Background(), []Move{{other, quarantined.Bridge}, {live, cam.Bridge}}))
		turns[len(turns)-1].ended = time.Now()
		turns = append(turns, at)
	}
	turns[len(turns)-1].ended = time.Now().Add(time.Second)
	stop.Store(true)
	senders.Wait()
	time.Sleep(20 * time.Millisecond)
	c.Close()
	<-done
	count := map[string]int{}
	for _, h := range all {
		count[h.release]++
		if !slices.ContainsFunc(turns, func(x turn) bool {
			return x.live == h.release && !h.read.Before(x.begun) && !h.sent.After(x.ended)
		}) {
			t.Errorf("a packet of %s slipped through between %s and %s", h.release, h.sent, h.read)
		}
	}
	if count["orv1"] < 100 || count["orv2"] < 100 {
		t.Errorf("heard %v", count)
	}
	t.Logf("heard %v", count)
}
