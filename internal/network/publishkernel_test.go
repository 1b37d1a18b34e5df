package network

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/userdata"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"orrery/internal/observe"
	"orrery/internal/plan/clash"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestPublish: another machine and the host reach a node by a port of the host. The node sees who
// connects. Nothing else gets in, and nodes cannot use the port. A change of the table by another
// program shows, and with the network the port goes.
//
// Promise (Networks): A published port lets in connections to it only, keeps their source address,
// and refuses nodes. What a step says of ports is checked; a port of a program of the host or
// another site is refused. With network.TestPublishedInMemory, network.TestPublishedHostile,
// network.TestPublishTaken, plan.TestPublishRefused.
func TestPublish(t *testing.T) {
	if !sandbox(t) {
		return
	}
	setting(t, "net.ipv4.ip_forward", "1")
	ctx := t.Context()
	open := publishing(data, "8080:80>10.8.68.9", "9000-9001:81-82>10.8.68.9", "5353:53/udp>10.8.68.9")
	must(t, Make(ctx, cam, noNodes))
	must(t, Make(ctx, open, noNodes))
	node := newPlace(t, "orv1", "10.8.68.9/24", "10.8.68.1")
	node.join(t, open.Bridge)
	other := newPlace(t, "orv2", "10.8.67.9/24", "10.8.67.1")
	other.join(t, cam.Bridge)
	colleague := newPlace(t, "up0", "192.0.2.1/24", "192.0.2.99")
	addAddress(t, "up0", "192.0.2.99/24")
	node.serve(t, "tcp", "10.8.68.9:80")
	node.serve(t, "tcp", "10.8.68.9:82")
	node.serve(t, "tcp", "10.8.68.9:22")
	node.serve(t, "udp", "10.8.68.9:53")

	same(t, []spec.Network{cam, open})
	colleague.gets(t, "tcp", "192.0.2.99:8080", "192.0.2.1")
	colleague.gets(t, "tcp", "192.0.2.99:9001", "192.0.2.1")
	colleague.gets(t, "udp", "192.0.2.99:5353", "192.0.2.1")
	colleague.gets(t, "tcp", "192.0.2.99:22", "")
	colleague.gets(t, "tcp", "10.8.68.9:80", "") // its own route leads to the host, which does not let it in
	other.gets(t, "tcp", "192.0.2.99:8080", "")
	here := &place{name: "the host", fd: thisNamespace(t)}
	here.gets(t, "tcp", "192.0.2.99:8080", "192.0.2.99")
	here.gets(t, "tcp", "10.8.68.1:8080", "10.8.68.1")
	here.gets(t, "tcp", "127.0.0.1:8080", "")

	// Another program removes the rules of one port.
	removeRules(t, "5353")
	found, err := Observe("karoo")
	must(t, err)
	for _, n := range found {
		if !slices.Contains(n.Drift, observe.RulesChanged) || strings.Contains(n.Publish, "5353") {
			t.Errorf("nothing has changed: %+v", n)
		}
	}
	must(t, Make(ctx, open, noNodes))
	same(t, []spec.Network{cam, open})
	colleague.gets(t, "udp", "192.0.2.99:5353", "192.0.2.1")

	// A change of another network keeps the ports; a port that is no longer declared goes.
	must(t, Remove(ctx, cam))
	same(t, []spec.Network{open})
	less := publishing(data, "8081:80>10.8.68.9")
	must(t, Make(ctx, less, noNodes))
	same(t, []spec.Network{less})
	colleague.gets(t, "tcp", "192.0.2.99:8080", "")
	colleague.gets(t, "tcp", "192.0.2.99:8081", "192.0.2.1")
	must(t, Remove(ctx, less))
	colleague.gets(t, "tcp", "192.0.2.99:8081", "")
	if all, err := tables(); err != nil || len(all) > 0 {
		t.Errorf("tables are left: %v, %v", all, err)
	}
}

// TestPublishTaken: a plan refuses a port that a program of the host has. A port of another site is
// refused also when the network is made.
func TestPublishTaken(t *testing.T) {
	if !sandbox(t) {
		return
	}
	ctx := t.Context()
	here := &place{name: "the host", fd: thisNamespace(t)}
	newPlace(t, "up0", "192.0.2.1/24", "192.0.2.99")
	addAddress(t, "up0", "192.0.2.99/24")
	here.serve(t, "tcp", "0.0.0.0:8080")
	here.serve(t, "udp", "192.0.2.99:5353")
	here.serve(t, "tcp", "127.0.0.1:9090")
	at, around, err := Around("karoo")
	must(t, err)
	for ports, why := range map[string]string{
		"8080:80":                "a program of the host listens at 0.0.0.0:8080",
		"8000-8100:8000-8100":    "a program of the host listens at 0.0.0.0:8080",
		"5353:53/udp":            "a program of the host listens at 192.0.2.99:5353",
		"198.51.100.1:81:81":     "not an address of the host",
		"9090:90":                "",
		"192.0.2.99:5354:53/udp": "",
	} {
		n := publishing(data, ports+">10.8.68.9")
		p := clash.PublishedTaken(&n, "", &around, at)
		if why == "" && p != nil || why != "" && (p == nil || !strings.Contains(p.Error(), why)) {
			t.Errorf("%s: %v", ports, p)
		}
	}
	// After a reboot, a program may have come first. The network is made all the same.
	must(t, Make(ctx, publishing(data, "8080:80>10.8.68.9"), noNodes))
	must(t, Make(ctx, publishing(data, "8081:80>10.8.68.9"), noNodes))
	other := publishing(cam, "8081:80>10.8.67.9")
	other.Site = "meerkat"
	other.Bridge = site.BridgeName(other.Site, other.Name)
	err = Make(ctx, other, noNodes)
	if !problem.Is(err, problem.Unable) || !strings.Contains(err.Error(), "node0 of site karoo") {
		t.Errorf("it was made: %v", err)
	}
}

// TestPublishFlows: a client of UDP that goes on sending from the same port is led to where the port
// leads now.
func TestPublishFlows(t *testing.T) {
	if !sandbox(t) {
		return
	}
	setting(t, "net.ipv4.ip_forward", "1")
	ctx := t.Context()
	must(t, Make(ctx, data, noNodes))
	node := newPlace(t, "orv1", "10.8.68.9/24", "10.8.68.1")
	node.join(t, data.Bridge)
	node.serve(t, "udp", "10.8.68.9:53")
	colleague := newPlace(t, "up0", "192.0.2.1/24", "192.0.2.99")
	addAddress(t, "up0", "192.0.2.99/24")
	var c net.Conn
	colleague.do(t, func() (err error) {
		c, err = net.Dial("udp4", "192.0.2.99:5353")
		return err
	})
	defer c.Close()
	answered := func() bool {
		for range 3 { // errors about earlier packets come first
			_, _ = io.WriteString(c, "hello")
			must(t, c.SetReadDeadline(time.Now().Add(unheard)))
			if n, err := c.Read(make([]byte, 64)); err == nil && n > 0 {
				return true
			}
		}
		return false
	}
	for _, step := range []struct {
		ports string
		want  bool
	}{
		{"5354:53/udp", false}, {"5353:54/udp", false}, {"5353:53/udp", true}, {"5353:54/udp", false},
		{"5353:53/udp", true},
	} {
		must(t, Make(ctx, publishing(data, step.ports+">10.8.68.9"), noNodes))
		if got := answered(); got != step.want {
			t.Errorf("with %s, an answer: %v", step.ports, got)
		}
	}
	must(t, Make(ctx, data, noNodes))
	if answered() {
		t.Error("there is an answer although the port is gone")
	}
}

// TestListeners: both ways to list sockets find the same.
func TestListeners(t *testing.T) {
	if !sandbox(t) {
		return
	}
	here := &place{name: "the host", fd: thisNamespace(t)}
	newPlace(t, "up0", "192.0.2.1/24", "192.0.2.99")
	addAddress(t, "up0", "192.0.2.99/24")
	here.serve(t, "tcp", "0.0.0.0:8080")
	here.serve(t, "tcp", "127.0.0.1:8081")
	here.serve(t, "udp", "192.0.2.99:5353")
	here.do(t, func() error {
		_, err := net.Listen("tcp6", "[::]:8082")
		return err
	})
	quick, err := listeners()
	must(t, err)
	slow, err := listenersOfProc()
	must(t, err)
	for _, found := range [][]observe.Listener{quick, slow} {
		var words []string
		for _, l := range found {
			words = append(words, fmt.Sprint(l.Proto, " ", netip.AddrPortFrom(l.Address, l.Port)))
		}
		slices.Sort(words)
		if got := strings.Join(words, ", "); got != "tcp 0.0.0.0:8080, tcp [::]:8082, udp 192.0.2.99:5353" {
			t.Errorf("found are %s", got)
		}
	}
}

// BenchmarkListeners: every plan lists them.
func BenchmarkListeners(b *testing.B) {
	for b.Loop() {
		if _, err := listeners(); err != nil {
			b.Fatal(err)
		}
	}
}

// TestPublishRouted: each node of a routed network has a link of its own.
func TestPublishRouted(t *testing.T) {
	if !sandbox(t) {
		return
	}
	colleague := world(t)
	open := publishing(quiet, "8080:80>10.8.72.11")
	must(t, Make(t.Context(), open, noNodes))
	node := newPlace(t, site.RoutedName("karoo", "karoo", "q", "quiet"), "10.8.72.11/24", "10.8.72.1")
	node.route(t, quiet, "10.8.72.11")
	node.serve(t, "tcp", "10.8.72.11:80")
	node.serve(t, "tcp", "10.8.72.11:22")
	colleague.gets(t, "tcp", "192.0.2.1:8080", "192.0.2.2")
	colleague.gets(t, "tcp", "192.0.2.1:22", "")
	node.gets(t, "tcp", "192.0.2.1:8080", "")
}

// TestPublishMany: a host takes as many rules as a plan allows in one transaction, and they are read
// back. More are refused.
func TestPublishMany(t *testing.T) {
	if !sandbox(t) {
		return
	}
	var all []string
	for i := range 16 {
		all = append(all, fmt.Sprintf("%d-%d:%d-%d>10.8.68.%d", 2000+256*i, 2255+256*i, 1000, 1255, 10+i))
	}
	many := publishing(data, all...)
	must(t, Make(t.Context(), many, noNodes))
	same(t, []spec.Network{many})
	must(t, Remove(t.Context(), many))
	more := publishing(data, append(all, "80:1000>10.8.68.99")...)
	if err := Make(t.Context(), more, noNodes); err == nil || !strings.Contains(err.Error(), "4097 ports") {
		t.Errorf("it was made: %v", err)
	}
}

// serve makes a place answer at an address with that of the caller, as it sees it.
func (p *place) serve(t *testing.T, proto, address string) {
	t.Helper()
	p.do(t, func() error {
		if proto == "udp" {
			c, err := net.ListenPacket("udp4", address)
			if err == nil {
				go answerPackets(c)
			}
			return err
		}
		l, err := net.Listen("tcp4", address)
		if err == nil {
			go answerConnections(l)
		}
		return err
	})
}

func answerPackets(c net.PacketConn) {
	for {
		_, from, err := c.ReadFrom(make([]byte, 16))
		if err != nil {
			return
		}
		host, _, _ := net.SplitHostPort(from.String())
		_, _ = c.WriteTo([]byte(host), from)
	}
}

func answerConnections(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
		_, _ = io.WriteString(c, host)
		c.Close()
	}
}

// gets checks that what answers at an address sees the place with an address, or that nothing
// answers if that is "".
func (p *place) gets(t *testing.T, proto, address, as string) {
	t.Helper()
	seen := ""
	err := p.in(func() error {
		wait := timeout
		if as == "" {
			wait = unheard
		}
		c, err := net.DialTimeout(proto+"4", address, wait)
		if err != nil {
			return err
		}
		defer c.Close()
		must(t, c.SetDeadline(time.Now().Add(wait)))
		if proto == "udp" {
			if _, err := io.WriteString(c, "hello"); err != nil {
				return err
			}
		}
		b := make([]byte, 64)
		n, err := c.Read(b)
		seen = string(b[:n])
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return err
	})
	if seen != as || as != "" && err != nil {
		t.Errorf("%s at %s of %s: it is seen as %q, not %q: %v", p.name, address, proto, seen, as, err)
	}
}

// thisNamespace returns the file of the network namespace of the test.
func thisNamespace(t *testing.T) int {
	t.Helper()
	fd, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	must(t, err)
	return fd
}

func addAddress(t *testing.T, link, address string) {
	t.Helper()
	on, err := netlink.LinkByName(link)
	must(t, err)
	a, err := netlink.ParseAddr(address)
	must(t, err)
	must(t, netlink.AddrAdd(on, a))
}

// removeRules removes the rules of site karoo that publish a port of the host, as another program
// might.
func removeRules(t *testing.T, port string) {
	t.Helper()
	c, err := nftables.New()
	must(t, err)
	removed := 0
	for _, name := range []string{publish, publishLocal} {
		chain := &nftables.Chain{Name: name, Table: siteTable("karoo")}
		rules, err := c.GetRules(chain.Table, chain)
		must(t, err)
		for _, r := range rules {
			if record, _ := userdata.GetString(r.UserData, recordType); strings.Contains(record, port) {
				must(t, c.DelRule(r))
				removed++
			}
		}
	}
	must(t, c.Flush())
	if removed == 0 {
		t.Fatal(fmt.Errorf("no rule is for port %s", port))
	}
}
