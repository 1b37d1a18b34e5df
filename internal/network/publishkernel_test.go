package network

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/userdata"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestPublish: another machine and the host reach a node by a port of the host. The node sees who
// connects. Nothing else gets in, and nodes cannot use the port. A change of the table by another
// program shows, and with the network the port goes.
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

// TestPublishTaken: a port that a program of the host or another site has is refused, and nothing is
// changed.
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
	for ports, why := range map[string]string{
		"8080:80":                "a program of the host listens at 0.0.0.0:8080",
		"8000-8100:8000-8100":    "a program of the host listens at 0.0.0.0:8080",
		"5353:53/udp":            "a program of the host listens at 192.0.2.99:5353",
		"198.51.100.1:81:81":     "not an address of the host",
		"9090:90":                "",
		"192.0.2.99:5354:53/udp": "",
	} {
		n := publishing(data, ports+">10.8.68.9")
		around, err := around(n.Site, nil)
		must(t, err)
		err = checkPortsFree(n, &around)
		if why == "" && err != nil || why != "" && (err == nil || !strings.Contains(err.Error(), why)) {
			t.Errorf("%s: %v", ports, err)
		}
	}
	err := Make(ctx, publishing(data, "8080:80>10.8.68.9"), noNodes)
	if !problem.Is(err, problem.Unable) || !strings.Contains(err.Error(), "sport = :8080") {
		t.Errorf("it was made: %v", err)
	}
	must(t, Make(ctx, publishing(data, "8081:80>10.8.68.9"), noNodes))
	other := publishing(cam, "8081:80>10.8.67.9")
	other.Site = "meerkat"
	other.Bridge = site.BridgeName(other.Site, other.Name)
	err = Make(ctx, other, noNodes)
	if !problem.Is(err, problem.Unable) || !strings.Contains(err.Error(), "node0 of site karoo") {
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
