package network

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"

	"orrery/internal/observe"
	"orrery/internal/plan/clash"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/test/need"
)

// declared returns a network whose nodes may connect to the host's test port.
func declared(siteName, name, subnet, gateway string, nat bool) spec.Network {
	n := spec.Network{
		Site: siteName, Name: name, Bridge: site.BridgeName(siteName, name), Subnet: subnet, Gateway: gateway, NAT: nat,
		MTU: 1500,
	}
	if gateway != "" {
		n.Host = "tcp/" + port
	}
	return n
}

var (
	cam    = declared("karoo", "cam", "10.8.67.0/24", "10.8.67.1/24", true)
	data   = declared("karoo", "data", "10.8.68.0/24", "10.8.68.1/24", false)
	closed = declared("karoo", "closed", "10.8.69.0/24", "", false)
	toyCam = declared("toy", "cam", "10.99.67.0/24", "10.99.67.1/24", true)
)

func makeAll(t *testing.T, all ...spec.Network) {
	t.Helper()
	for _, n := range all {
		must(t, Make(context.Background(), n, noNodes))
	}
}

func removeAll(t *testing.T, all ...spec.Network) {
	t.Helper()
	for _, n := range all {
		must(t, Remove(context.Background(), n))
	}
}

// specs returns the specs of observed networks.
func specs(seen []observe.Network) []spec.Network {
	var all []spec.Network
	for _, n := range seen {
		all = append(all, n.Network)
	}
	return all
}

func TestPacketsKeepToTheirNetworks(t *testing.T) {
	if !sandbox(t) {
		return
	}
	setting(t, "net.ipv4.ip_forward", "1")
	makeAll(t, cam, data, closed, toyCam)
	node := func(n spec.Network, link, address string) *place {
		gateway, _, _ := strings.Cut(n.Gateway, "/")
		p := newPlace(t, link, address, gateway)
		p.join(t, n.Bridge)
		p.do(t, answer)
		return p
	}
	cam11 := node(cam, "orv1", "10.8.67.11/24")
	cam12 := node(cam, "orv2", "10.8.67.12/24")
	data11 := node(data, "orv3", "10.8.68.11/24")
	closed11 := node(closed, "orv4", "10.8.69.11/24")
	closed12 := node(closed, "orv5", "10.8.69.12/24")
	toy11 := node(toyCam, "orv6", "10.99.67.11/24")
	outside := newPlace(t, "up0", "192.0.2.2/24", "192.0.2.1")
	outside.do(t, answer)
	uplink, err := netlink.LinkByName("up0")
	must(t, err)
	address, err := netlink.ParseAddr("192.0.2.1/24")
	must(t, err)
	must(t, netlink.AddrAdd(uplink, address))
	must(t, answer())

	t.Run("one network", func(t *testing.T) {
		cam11.reaches(t, "10.8.67.12", "10.8.67.11")
		cam12.reaches(t, "10.8.67.11", "10.8.67.12")
		closed11.reaches(t, "10.8.69.12", "10.8.69.11")
		closed12.reaches(t, "10.8.69.11", "10.8.69.12")
	})
	t.Run("one network seen by br_netfilter", func(t *testing.T) {
		if !exists("/proc/sys/net/bridge/bridge-nf-call-iptables") {
			t.Skip("not run: no br_netfilter in this kernel")
		}
		setting(t, "net.bridge.bridge-nf-call-iptables", "1")
		defer setting(t, "net.bridge.bridge-nf-call-iptables", "0")
		cam11.reaches(t, "10.8.67.12", "10.8.67.11")
		data11.misses(t, "10.8.67.11")
	})
	t.Run("networks of a site", func(t *testing.T) {
		cam11.misses(t, "10.8.68.11", "10.8.69.11")
		data11.misses(t, "10.8.67.11", "10.8.69.11")
	})
	t.Run("sites", func(t *testing.T) {
		cam11.misses(t, "10.99.67.11", "10.99.67.1")
		toy11.misses(t, "10.8.67.11", "10.8.67.1", "10.8.68.1")
	})
	t.Run("gateways", func(t *testing.T) {
		cam11.reaches(t, "10.8.67.1", "10.8.67.11")
		cam11.misses(t, "10.8.68.1")
		data11.reaches(t, "10.8.68.1", "10.8.68.11")
		data11.misses(t, "10.8.67.1", "192.0.2.1")
		cam11.reaches(t, "192.0.2.1", "10.8.67.11")
	})
	t.Run("outside", func(t *testing.T) {
		cam11.reaches(t, "192.0.2.2", "192.0.2.1")
		toy11.reaches(t, "192.0.2.2", "192.0.2.1")
		data11.misses(t, "192.0.2.2")
		outside.misses(t, "10.8.67.11", "10.8.68.11")
		next := outside.hears(t)
		data11.says(t, "192.0.2.2") // it would be seen as 10.8.68.11
		cam11.says(t, "192.0.2.2")
		if from := next(); from != "192.0.2.1" {
			t.Errorf("heard %s outside", from)
		}
	})
	t.Run("from the host", func(t *testing.T) {
		for _, address := range []string{"10.8.67.11", "10.8.68.11", "10.99.67.11"} {
			if _, err := call(address, timeout); err != nil {
				t.Errorf("%s: %v", address, err)
			}
		}
	})
	t.Run("a site has gone", func(t *testing.T) {
		removeAll(t, toyCam)
		cam11.reaches(t, "10.8.67.12", "10.8.67.11")
		cam11.reaches(t, "192.0.2.2", "192.0.2.1")
		cam11.misses(t, "10.8.68.11")
	})
}

func TestMakeBringsBackWhatWasChanged(t *testing.T) {
	if !sandbox(t) {
		return
	}
	wide := cam
	wide.MTU = 9000
	want := []spec.Network{wide, closed, data}
	makeAll(t, wide, data, closed)
	same(t, want)
	link := func() netlink.Link {
		l, err := netlink.LinkByName(cam.Bridge)
		must(t, err)
		return l
	}
	addr := func(text string) *netlink.Addr {
		a, err := netlink.ParseAddr(text)
		must(t, err)
		return a
	}
	for what, change := range map[string]func() error{
		"bridge down":      func() error { return netlink.LinkSetDown(link()) },
		"no address":       func() error { return netlink.AddrDel(link(), addr("10.8.67.1/24")) },
		"a second address": func() error { return netlink.AddrAdd(link(), addr("10.8.67.2/24")) },
		"another mtu":      func() error { return netlink.LinkSetMTU(link(), 1400) },
		"no mark":          func() error { return netlink.LinkSetAlias(link(), "") },
		"no bridge":        func() error { return netlink.LinkDel(link()) },
		"no table":         func() error { return flush(func(c *nftables.Conn) { c.DelTable(siteTable("karoo")) }) },
		"no rules":         func() error { return flush(func(c *nftables.Conn) { c.FlushTable(siteTable("karoo")) }) },
		"no forward chain": func() error {
			return flush(func(c *nftables.Conn) { c.FlushChain(chains(siteTable("karoo"))[forward]) })
		},
		"a rule more": func() error {
			return flush(func(c *nftables.Conn) {
				t := siteTable("karoo")
				c.InsertRule(&nftables.Rule{Table: t, Chain: chains(t)[forward], Exprs: rule{verdict: accept}.exprs(nil)})
			})
		},
	} {
		t.Run(what, func(t *testing.T) {
			must(t, change())
			got, err := Observe("karoo")
			must(t, err)
			i := slices.IndexFunc(got, func(n observe.Network) bool { return n.Name == "cam" })
			if i >= 0 && got[i].Matches(&wide) {
				t.Error("the change was not observed")
			}
			makeAll(t, wide)
			same(t, want)
		})
	}
}

func flush(change func(c *nftables.Conn)) error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	change(c)
	return c.Flush()
}

// same checks that the site's networks exist as declared.
func same(t *testing.T, want []spec.Network) {
	t.Helper()
	got, err := Observe(want[0].Site)
	must(t, err)
	drifted := slices.ContainsFunc(got, func(n observe.Network) bool { return len(n.Drift) > 0 })
	if drifted || !slices.Equal(specs(got), want) {
		t.Errorf("there is\n%+v instead of\n%+v", got, want)
	}
}

func TestMakeFollowsTheDeclaration(t *testing.T) {
	if !sandbox(t) {
		return
	}
	makeAll(t, cam, data)
	n := cam
	n.Subnet, n.Gateway, n.NAT, n.MTU = "10.8.70.0/25", "10.8.70.126/25", false, 1400
	makeAll(t, n)
	same(t, []spec.Network{n, data})
	n.Gateway, n.Host = "", ""
	makeAll(t, n)
	same(t, []spec.Network{n, data})
	// Two networks exchange places.
	a, b := n, data
	a.Subnet, a.Gateway, b.Subnet, b.Gateway = data.Subnet, data.Gateway, n.Subnet, n.Gateway
	makeAll(t, a, b)
	same(t, []spec.Network{a, b})
}

func TestBridgeKeepsItsMTUAndAddress(t *testing.T) {
	if !sandbox(t) {
		return
	}
	makeAll(t, cam)
	must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "orv1", MTU: 1300}, PeerName: "peer"}))
	(&place{name: "orv1"}).join(t, cam.Bridge)
	same(t, []spec.Network{cam})
	link, err := netlink.LinkByName(cam.Bridge)
	must(t, err)
	if got := link.Attrs().HardwareAddr.String(); got != bridgeMAC(cam.Bridge).String() {
		t.Errorf("the bridge took the hardware address %s of its port", got)
	}
}

func TestRemoveLeavesNothing(t *testing.T) {
	if !sandbox(t) {
		return
	}
	makeAll(t, cam, data, closed, toyCam)
	removeAll(t, data)
	same(t, []spec.Network{cam, closed})
	same(t, []spec.Network{toyCam})
	seen, err := Observe("karoo")
	must(t, err)
	removeAll(t, specs(seen)...)
	removeAll(t, toyCam, toyCam) // the second time it does not exist
	nothingLeft(t)
}

func TestRemoveWhatIsHalfThere(t *testing.T) {
	if !sandbox(t) {
		return
	}
	makeAll(t, cam, data)
	link, err := netlink.LinkByName(cam.Bridge)
	must(t, err)
	must(t, netlink.LinkDel(link))
	must(t, flush(func(c *nftables.Conn) { c.DelChain(chains(siteTable("karoo"))[input]) }))
	attrs := netlink.NewLinkAttrs() // a run was killed before it marked its bridge
	attrs.Name = toyCam.Bridge
	attrs.HardwareAddr = bridgeMAC(toyCam.Bridge)
	must(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}))
	seen, err := Observe("karoo")
	must(t, err)
	if len(seen) != 2 {
		t.Errorf("observed %+v", seen)
	}
	removeAll(t, specs(seen)...)
	nothingLeft(t)
}

func nothingLeft(t *testing.T) {
	t.Helper()
	links, err := netlink.LinkList()
	must(t, err)
	for _, l := range links {
		if strings.HasPrefix(l.Attrs().Name, "or") {
			t.Errorf("link %s is left", l.Attrs().Name)
		}
	}
	spaces, _ := filepath.Glob(namespaceDir + "/*")
	for _, space := range spaces {
		t.Errorf("namespace %s is left", space)
	}
	c, err := nftables.New()
	must(t, err)
	left, err := c.ListTables()
	must(t, err)
	for _, table := range left {
		t.Errorf("table %s is left", table.Name)
	}
	seen, err := Observe("")
	must(t, err)
	if len(seen) > 0 {
		t.Errorf("still observed: %+v", seen)
	}
}

func TestMakeRefuses(t *testing.T) {
	if !sandbox(t) {
		return
	}
	dummy := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "lan0"}, PeerName: "lan1"}
	must(t, netlink.LinkAdd(dummy))
	must(t, up("lan0"))
	a, err := netlink.ParseAddr("10.20.0.5/16")
	must(t, err)
	must(t, netlink.AddrAdd(dummy, a))
	peer, err := netlink.LinkByName("lan1")
	must(t, err)
	must(t, up("lan1"))
	for table, to := range map[int]string{254: "10.40.0.0/16", 52: "10.31.0.0/16"} {
		dst, err := netlink.ParseIPNet(to)
		must(t, err)
		must(t, netlink.RouteAdd(&netlink.Route{Dst: dst, LinkIndex: peer.Attrs().Index, Table: table}))
	}
	half, err := netlink.ParseIPNet("0.0.0.0/1")
	must(t, err)
	must(t, netlink.RouteAdd(&netlink.Route{Dst: half, LinkIndex: peer.Attrs().Index}))
	taken := declared("karoo", "taken", "10.8.71.0/24", "", false)
	foreign := netlink.NewLinkAttrs()
	foreign.Name = taken.Bridge
	must(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: foreign}))
	makeAll(t, toyCam)

	for want, n := range map[string]spec.Network{
		"interface lan0":          declared("karoo", "x", "10.20.7.0/24", "10.20.7.1/24", false),
		"10.40.0.0/16, a route":   declared("karoo", "x", "10.40.0.0/14", "10.40.0.1/14", false),
		"10.31.0.0/16, a route":   declared("karoo", "x", "10.31.9.0/24", "10.31.9.1/24", false),
		"network cam of site toy": declared("karoo", "x", "10.99.67.128/25", "10.99.67.129/25", false),
		"not Orrery's":            taken,
		"is not an IPv4 subnet":   declared("karoo", "x", "fd00::/64", "", false),
		"is not in 10.8.72.0/24":  declared("karoo", "x", "10.8.72.0/24", "10.8.73.1/24", false),
	} {
		t.Run(want, func(t *testing.T) {
			err := Make(context.Background(), n, noNodes)
			_, seen, seeErr := Around("karoo") // a plan reports the same before anything is done
			must(t, seeErr)
			h := &observe.Host{Name: "sv1", Around: seen}
			if p := clash.CheckPlanned(h, &n, nil); check(n) == nil && (p == nil || !strings.Contains(p.Error(), want)) {
				t.Errorf("a plan says %v", p)
			}
			var p *problem.Problem
			if !errors.As(err, &p) || p.Kind != problem.Unable || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v", err)
			}
		})
	}
	if seen, err := Observe("karoo"); err != nil || len(seen) > 0 {
		t.Errorf("a refused network was made: %v %v", seen, err)
	}
	removeAll(t, taken, toyCam)
	if _, err := netlink.LinkByName(taken.Bridge); err != nil {
		t.Error("Remove touched a bridge that is not Orrery's")
	}
}

func TestMakeManyAtOnce(t *testing.T) {
	if !sandbox(t) {
		return
	}
	var want []spec.Network
	for i := range 12 {
		want = append(want, declared("karoo", fmt.Sprintf("net%02d", i), fmt.Sprintf("10.8.%d.0/24", i),
			fmt.Sprintf("10.8.%d.1/24", i), i%2 == 0))
	}
	atOnce := func(do func(context.Context, spec.Network) error) {
		var all sync.WaitGroup
		for _, n := range want {
			all.Go(func() {
				if err := do(context.Background(), n); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	atOnce(func(ctx context.Context, n spec.Network) error { return Make(ctx, n, noNodes) })
	same(t, want)
	atOnce(Remove)
	nothingLeft(t)
}

// TestMakeKilledAtAnyMoment kills runs that make and remove networks. Whatever they leave, the next
// run reaches the desired state.
func TestMakeKilledAtAnyMoment(t *testing.T) {
	need.Integration(t) // it takes too long for a quick run
	killed(t, func(t *testing.T) {
		makeAll(t, cam, data)
		removeAll(t, cam, data)
	}, 15, 20*time.Millisecond, func(t *testing.T, again bool) {
		if again {
			makeAll(t, cam, data)
			same(t, []spec.Network{cam, data})
			return
		}
		seen, err := Observe("karoo")
		must(t, err)
		removeAll(t, specs(seen)...)
		must(t, Sweep(context.Background()))
		nothingLeft(t)
	})
}

// killed repeats an operation in a process that is killed, several times, and then repairs the
// result. Everything must exist again, or nothing.
func killed(t *testing.T, work func(*testing.T), times int, longest time.Duration,
	right func(t *testing.T, again bool)) {
	const victim = "ORRERY_NETWORK_VICTIM"
	if os.Getenv(victim) != "" {
		for {
			work(t)
		}
	}
	if !sandbox(t) {
		return
	}
	runtime.LockOSThread() // Pdeathsig follows the thread
	left := map[int]int{}
	for range times {
		cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), victim+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		must(t, cmd.Start())
		time.Sleep(20*time.Millisecond + rand.N(longest))
		must(t, cmd.Process.Kill())
		cmd.Wait()
		seen, err := Observe("")
		must(t, err)
		left[len(seen)]++
		right(t, rand.IntN(2) == 0)
	}
	t.Log("observed after a kill (networks):", left)
}

func TestLinksOfNodes(t *testing.T) {
	if !sandbox(t) {
		return
	}
	makeAll(t, cam, toyCam)
	for name, bridge := range map[string]string{"orv1": cam.Bridge, "orv2": cam.Bridge, "orv3": toyCam.Bridge,
		"orv4": ""} {
		must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: "peer-" + name}))
		if bridge != "" {
			(&place{name: name}).join(t, bridge)
		}
	}
	ends := []string{"orv1", "orv2", "orv3", "orv4"}
	must(t, RemoveLinks(append(ends, "orv9")))
	for _, name := range ends {
		for _, end := range []string{name, "peer-" + name} {
			if _, err := netlink.LinkByName(end); err == nil {
				t.Error("left:", end)
			}
		}
	}
	if err := RemoveLinks([]string{"lo"}); err == nil {
		t.Error("RemoveLinks takes any link")
	}
}
