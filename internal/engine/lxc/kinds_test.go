package lxc

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"orrery/internal/engine"
	"orrery/internal/engine/enginetest"
	"orrery/internal/host"
	"orrery/internal/network"
	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// The ends of the test's veth pairs. The first pair carries macvlans, and nodes take the ends of
// the second.
var testVethPairs = []site.VethPair{
	{Name: "mac", Ends: [2]string{"orit0a", "orit0b"}}, {Name: "nic", Ends: [2]string{"orit1a", "orit1b"}},
}

// subnets has the subnet of each kind of network other than the bridge.
var subnets = map[string]string{site.Routed: "10.99.128.", site.Macvlan: "10.99.129.", site.Exclusive: "10.99.130."}

// otherKinds creates a network of each kind other than the bridge, and the interfaces below them.
func (g ground) otherKinds(t *testing.T) {
	t.Helper()
	for _, c := range testVethPairs {
		enginetest.Network(t, spec.VethPairOf(testSite, c))
	}
	for _, kind := range []string{site.Routed, site.Macvlan, site.Exclusive} {
		n := g.NetworkOfKind(kind, subnets[kind])
		switch kind {
		case site.Macvlan:
			n.Parent = testVethPairs[0].Ends[0]
		case site.Exclusive:
			n.Gateway = ""
		}
		enginetest.Network(t, n)
	}
}

// onto connects a node to the network of a kind.
func onto(_ *testing.T, n *spec.Node, kind string) {
	enginetest.ConnectToKind(n, kind, subnets[kind])
	switch nic := &n.NICs[0]; kind {
	case site.Macvlan:
		nic.Parent = testVethPairs[0].Ends[0]
	case site.Exclusive:
		nic.Parent, nic.Gateway = testVethPairs[1].Ends[n.ID%2], ""
	}
}

// reboot makes a node reboot by itself, so that LXC makes its links anew.
func (g ground) reboot(t *testing.T, ref engine.Ref) {
	t.Helper()
	c := g.container(ref)
	before := c.init()
	_ = g.Runner(ref).Run(t.Context(), host.Command{Args: []string{"systemctl", "--no-block", "reboot"}})
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		record, err := g.Record(ref)
		must(t, err)
		// LXC first forks the process, and then moves the links to it.
		if now := c.init(); now != 0 && now != before && interfaces(now)[record.NICs[0].Name] {
			c.awaitSystemd(t.Context(), record)
			return
		}
		if time.Since(begun) > time.Minute {
			t.Fatalf("node %s does not come back", ref.Name)
		}
	}
}

// TestInterfaceComesBack: when a node has ended, in whatever way, the host interface that it took
// is as it was before, also if the host has lxcfs.
func TestInterfaceComesBack(t *testing.T) {
	g := newGround(t)
	inventLXCFS(t, "proc/uptime")
	g.otherKinds(t)
	name := testVethPairs[1].Ends[1]
	n := g.Node("taker", 1)
	onto(t, n, site.Exclusive)
	n.NICs[0].MTU = 1400
	must(t, g.Create(t.Context(), n))
	ref := engine.RefOf(n)
	before := look(t, name)
	if before == "" {
		t.Fatalf("%s is not there", name)
	}
	for _, how := range g.ends(t, ref) {
		must(t, g.Start(t.Context(), ref))
		if look(t, name) != "" {
			t.Errorf("%s is still on the host", name)
		}
		out, err := exec.Command("nsenter", "--net=/proc/"+fmt.Sprint(g.container(ref).init())+"/ns/net", "ip", "-o",
			"link", "show", "eth0").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "mtu 1400") || !strings.Contains(string(out), before[:17]) {
			t.Errorf("in the node: %v: %s", err, out)
		}
		must(t, how.end())
		if after := look(t, name); after != before {
			t.Errorf("%s: %s is %q, not %q", how.what, name, after, before)
		}
	}
}

// look returns the state of a host interface, or "" if it does not exist.
func look(t *testing.T, name string) string {
	t.Helper()
	link, err := netlink.LinkByName(name)
	if err != nil {
		return ""
	}
	a := link.Attrs()
	addresses, err := netlink.AddrList(link, netlink.FAMILY_V4)
	must(t, err)
	return fmt.Sprint(a.HardwareAddr, a.MTU, a.Alias, a.Flags, addresses, a.TxQLen, a.Promisc)
}

// TestLostInterfaceIsSeen: a node whose interface was removed is not reported as connected to its
// network. An interface that was lost with a killed node is refused with a cure, until its veth
// pair is created again.
func TestLostInterfaceIsSeen(t *testing.T) {
	g := newGround(t)
	g.otherKinds(t)
	n, peer := g.Node("loses", 1), g.Node("peer", 2)
	onto(t, n, site.Exclusive)
	onto(t, peer, site.Exclusive)
	for _, n := range []*spec.Node{n, peer} {
		must(t, g.Create(t.Context(), n))
		must(t, g.Start(t.Context(), engine.RefOf(n)))
	}
	gone := func() observe.Network {
		t.Helper()
		all, err := network.Observe(testSite)
		must(t, err)
		for _, n := range all {
			if n.Name == "vethpair.nic" {
				return n
			}
		}
		t.Fatal("the veth pair is not observed")
		return observe.Network{}
	}
	veth := spec.VethPairOf(testSite, testVethPairs[1])
	if got := gone(); !slices.Equal(got.Drift, []observe.NetworkDrift{observe.EndsGone}) {
		t.Errorf("observed is %+v", got)
	}
	bridges := func() string {
		t.Helper()
		all, err := g.List(t.Context(), testSite)
		must(t, err)
		var words []string
		for _, o := range all {
			words = append(words, string(o.State)+" "+o.NICs[0].Bridge)
		}
		return strings.Join(words, ", ")
	}
	on := site.BridgeName(testSite, site.Exclusive)
	if got, want := bridges(), "running "+on+", running "+on; got != want {
		t.Errorf("there is %q, not %q", got, want)
	}
	c := g.container(engine.RefOf(n))
	pids := append(c.group().Processes(), c.monitor())
	// Kill the monitor too, so that nothing moves the interface back.
	for _, pid := range pids {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
	}
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if got := bridges(); got == string(observe.Stopped)+" "+on+", running " {
			break
		} else if time.Since(begun) > 2*time.Minute {
			t.Fatalf("there is %q", got)
		}
	}
	if err := g.Start(t.Context(), engine.RefOf(n)); err == nil ||
		!strings.Contains(err.Error(), "no interface "+n.NICs[0].Parent) {
		t.Errorf("it starts without: %v", err)
	}
	must(t, network.Make(t.Context(), veth, func() ([]network.Port, error) { return nil, nil }))
	must(t, g.Start(t.Context(), engine.RefOf(n)))
	if _, err := os.Stat(filepath.Join("/sys/class/net", peer.NICs[0].Parent)); err != nil {
		t.Error("the other end is not on the host")
	}
}

// An ending is a way in which a node ends.
type ending struct {
	what string
	end  func() error
}

// ends returns the ways in which a test ends a node, which it starts again between them.
func (g ground) ends(t *testing.T, ref engine.Ref) []ending {
	stop := func(timeout time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		return g.Stop(ctx, ref)
	}
	return []ending{
		{"stopped", func() error { return stop(30 * time.Second) }},
		{"stopped by force", func() error { return stop(0) }},
		{"destroyed", func() error { return g.Destroy(t.Context(), ref) }},
	}
}
