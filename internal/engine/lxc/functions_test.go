package lxc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"orrery/internal/engine"
	"orrery/internal/engine/enginetest"
	"orrery/internal/host"
	"orrery/internal/host/sriov"
	"orrery/internal/network/ends"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A standInCard is a network card in a made-up sysfs. Its only virtual function is an end of a veth
// pair, which is moved, renamed and set as the real one would be.
type standInCard struct {
	sriov.Links // of this machine
	t           *testing.T
	dir         string
	end         string // name of the end while no node has it
	mu          sync.Mutex
	orders      []string
}

const standInAddress = "0000:0f:00.0"

// newStandInCard replaces the cards of this machine for a test.
func newStandInCard(t *testing.T, end string) *standInCard {
	t.Helper()
	dir := t.TempDir()
	c := &standInCard{t: t, Links: sriov.Local.Links, end: end,
		dir: filepath.Join(dir, "sys/bus/pci/devices", standInAddress)}
	must(t, os.MkdirAll(filepath.Join(c.dir, "net", "oritcard"), 0o755))
	for name, text := range map[string]string{"sriov_totalvfs": "1", "sriov_numvfs": "0", "net/oritcard/flags": "0x1003"} {
		must(t, os.WriteFile(filepath.Join(c.dir, name), []byte(text+"\n"), 0o644))
	}
	real := sriov.Local
	sriov.Local = sriov.Bus{Sys: filepath.Join(dir, "sys"), Loans: filepath.Join(dir, "run"), Order: c.order, Links: c,
		Timeout: 30 * time.Second}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for c.mirror(); ; c.mirror() {
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() { close(done); <-ended; sriov.Local = real })
	return c
}

// mirror makes the sysfs show the function's interface while it is in the host's namespace. A goroutine
// calls it for what waits for a change. Whatever reads the sysfs only once is preceded by a call of its
// own, as on a busy machine the goroutine is late.
func (c *standInCard) mirror() {
	t := c.t
	c.mu.Lock()
	defer c.mu.Unlock()
	f := filepath.Join(c.dir, "virtfn0")
	if _, err := os.Stat(f); err != nil {
		return
	}
	links, err := ends.ListConsistent(netlink.LinkList)
	if err != nil {
		t.Error(err)
		return
	}
	shown := ""
	for _, link := range links {
		a := link.Attrs()
		if a.Name != c.end && !strings.HasPrefix(a.Name, "orf") {
			continue
		}
		shown = a.Name
		// Files are never seen half written, as in a real sysfs.
		in := filepath.Join(f, "net", a.Name)
		at := in
		if _, err := os.Stat(in); err != nil {
			at = filepath.Join(f, "appearing")
		}
		for name, text := range map[string]string{"flags": fmt.Sprintf("%#x", a.RawFlags),
			"address": a.HardwareAddr.String(), "mtu": strconv.Itoa(a.MTU)} {
			file := host.File{Path: filepath.Join(at, name), Content: []byte(text + "\n"), Mode: 0o644}
			if now, err := os.ReadFile(file.Path); err == nil && string(now) == text+"\n" {
				continue
			}
			if err := errors.Join(os.MkdirAll(at, 0o755), host.WriteFile(file)); err != nil {
				t.Error(err)
			}
		}
		if at != in {
			if err := os.Rename(at, in); err != nil {
				t.Error(err)
			}
		}
	}
	entries, _ := os.ReadDir(filepath.Join(f, "net"))
	for _, e := range entries {
		if e.Name() != shown {
			if err := os.RemoveAll(filepath.Join(f, "net", e.Name())); err != nil {
				t.Error(err)
			}
		}
	}
}

func (c *standInCard) order(file, text string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := filepath.Join(c.dir, "virtfn0")
	drivers := filepath.Join(c.dir, "..", "..", "drivers")
	attach := func() error { return os.Symlink("../../../drivers/igbvf", filepath.Join(f, "driver")) }
	var err error
	switch name := filepath.Base(file); {
	case name == "unbind":
		return os.Remove(filepath.Join(f, "driver"))
	case name == "bind":
		return attach()
	case text == "0":
		err = os.RemoveAll(f)
	default:
		err = errors.Join(os.MkdirAll(filepath.Join(f, "net"), 0o755),
			os.MkdirAll(filepath.Join(drivers, "igbvf"), 0o755), attach())
	}
	c.orders = append(c.orders, filepath.Base(file)+" "+text)
	return errors.Join(err, os.WriteFile(file, []byte(text+"\n"), 0o644))
}

func (c *standInCard) Settings(string, int) (sriov.Settings, error) {
	c.mirror()
	return sriov.Settings{}, nil
}

func (c *standInCard) Set(card string, index int, what sriov.Setting, value string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.orders = append(c.orders, fmt.Sprintf("%s %d %s %s", card, index, what, value))
	return nil
}

func (c *standInCard) SetMAC(name, mac string) error {
	err := c.Links.SetMAC(name, mac)
	c.mirror()
	return err
}

func (c *standInCard) Rename(name, to string) error {
	err := c.Links.Rename(name, to)
	c.mirror()
	return err
}

func (c *standInCard) SetUp(name string, up bool) error {
	err := c.Links.SetUp(name, up)
	c.mirror()
	return err
}

func (c *standInCard) given() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	orders := c.orders
	c.orders = nil
	return orders
}

// TestVirtualFunction: a node on a network of virtual functions has one with its own address, which
// its card enforces. When the node has ended, in whatever way, the function is as it was before, and
// after the network there is none.
func TestVirtualFunction(t *testing.T) {
	g := newGround(t)
	const end = "oritvf0"
	pair := site.VethPair{Name: "vf", Ends: [2]string{"oritvf1", end}}
	enginetest.Network(t, spec.VethPairOf(testSite, pair))
	link, err := netlink.LinkByName(end)
	must(t, err)
	must(t, netlink.LinkSetDown(link)) // as an unused function
	before := look(t, end)
	c := newStandInCard(t, end)
	const kind, subnet = "sriov", "10.99.130."
	on := g.NetworkOfKind(kind, subnet)
	on.Gateway, on.Parent = "", "oritcard"
	enginetest.Network(t, on)
	if got := c.given(); !slices.Equal(got, []string{"sriov_numvfs 1"}) {
		t.Errorf("for the network: %v", got)
	}
	n := g.Node("virtual", 1)
	enginetest.ConnectToKind(n, kind, subnet)
	nic := &n.NICs[0]
	nic.Parent, nic.Gateway, nic.VLAN, nic.MTU = standInAddress+"v0", "", 100, 1400
	must(t, g.Create(t.Context(), n))
	ref := engine.RefOf(n)
	for _, how := range g.ends(t, ref) {
		c.mirror()
		must(t, g.Start(t.Context(), ref))
		if got, want := c.given(), []string{"oritcard 0 spoofchk on", "oritcard 0 trust off", "oritcard 0 vlan 100",
			"oritcard 0 mac " + nic.MAC}; !slices.Equal(got, want) {
			t.Errorf("%s: the orders for the card are %v", how.what, got)
		}
		if look(t, end) != "" {
			t.Errorf("%s is still on the host", end)
		}
		out, err := exec.Command("nsenter", "--net=/proc/"+fmt.Sprint(g.container(ref).init())+"/ns/net", "ip", "-o",
			"address", "show", "eth0").CombinedOutput()
		if err != nil || !strings.Contains(string(out), nic.Address.String()) {
			t.Errorf("in the node: %v: %s", err, out)
		}
		out, err = exec.Command("nsenter", "--net=/proc/"+fmt.Sprint(g.container(ref).init())+"/ns/net", "ip", "-o",
			"link", "show", "eth0").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "mtu 1400") || !strings.Contains(string(out), nic.MAC) {
			t.Errorf("in the node: %v: %s", err, out)
		}
		if got := c.uses(t); got != n.Site+"/"+strconv.Itoa(n.ID) {
			t.Errorf("%s: the function is lent to %q", how.what, got)
		}
		must(t, how.end())
		if after := look(t, end); after != before {
			t.Errorf("%s: %s is %q, not %q", how.what, end, after, before)
		}
		if got := c.given(); !slices.Contains(got, "oritcard 0 mac 00:00:00:00:00:00") || c.uses(t) != "" {
			t.Errorf("%s: %v; lent to %q", how.what, got, c.uses(t))
		}
	}
}

// uses returns the node that has the function, or "".
func (c *standInCard) uses(t *testing.T) string {
	t.Helper()
	c.mirror()
	cards, err := sriov.Local.Cards()
	must(t, err)
	if use := cards[0].Use(0); use.Other != "" {
		t.Errorf("the function is used: %s", use.Other)
	}
	return cards[0].Use(0).Holder
}
