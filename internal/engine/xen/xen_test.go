package xen

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/enginetest"
	"orrery/internal/host"
	"orrery/internal/host/qemu"
	"orrery/internal/image"
	"orrery/internal/network"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/volume"
	"orrery/test/need"
)

const (
	testSite     = "it-xen"
	testSubnet   = "10.99.221."
	routedSubnet = "10.99.222."
)

// world is an engine on a Dom0 that is played, with layers and bridges for its nodes.
type world struct {
	provisioned
	dom0                dom0
	base, kernel, layer string
	lan, apart          spec.Network // the same addresses
}

func newWorld(t *testing.T) world {
	t.Helper()
	need.Integration(t)
	need.Guest(t)
	if _, err := os.Stat("/proc/xen/capabilities"); err == nil {
		t.Skip("this machine runs on Xen: scenarios/metal/run --xen tries the engine with it")
	}
	store := image.Open(need.State())
	dirs := host.Dirs{State: filepath.Join(need.State(), "xen"), Run: "/run/orrery-test-xen"}
	e := New(dirs, store)
	e.lacks, e.dom0 = func() error { _, err := qemu.Guest(); return err }, func() error { return nil }
	sweepDom0s(t)
	d := newDom0(t)
	clean := func() {
		nodes, err := e.List(context.Background(), "")
		must(t, err)
		for i := range nodes { // also what a test run that was killed has left
			if err := e.Destroy(context.Background(), engine.RefOf(&nodes[i].Node)); err != nil {
				t.Error(err)
			}
		}
		for _, dir := range []string{dirs.State, dirs.Run} {
			if err := os.RemoveAll(dir); err != nil {
				t.Error(err)
			}
		}
	}
	clean()
	t.Cleanup(clean)

	say := func(text string) { t.Log(text) }
	base := spec.Base(site.Mirror{}, site.Image{Name: "debian", Suite: "bookworm"})
	must(t, store.BuildBase(t.Context(), base, site.Mirror{}, say))
	kernel := spec.KernelLayer(site.Mirror{}, base) // nothing boots: the small one does
	boots := func(ctx context.Context, in host.Runner) error { return store.FillKernel(ctx, in, kernel, io.Discard) }
	must(t, store.BuildLayer(t.Context(), kernel, site.Mirror{}, boots, say))
	other := *base
	other.Digest = spec.DigestBytes([]byte("another layer of " + t.Name()))
	other.Base, other.Title = base.Digest, "debian + another"
	fill := func(ctx context.Context, in host.Runner) error {
		return in.Put(ctx, host.File{Path: "/etc/another", Content: []byte("layer\n"), Mode: 0o644})
	}
	must(t, store.BuildLayer(t.Context(), &other, site.Mirror{}, fill, say))

	lan := spec.Network{
		Site: testSite, Name: "lan", Bridge: site.BridgeName(testSite, "lan"), Subnet: testSubnet + "0/24", Gateway: testSubnet + "1/24", MTU: 1500,
	}
	must(t, network.Make(t.Context(), lan))
	t.Cleanup(func() { must(t, network.Remove(context.Background(), lan)) })
	apart := spec.Network{
		Site: site.Quarantine(testSite, 701), Name: "lan", Bridge: site.BridgeName(site.Quarantine(testSite, 701), "lan"), Subnet: lan.Subnet, MTU: 1500,
	}
	must(t, network.Make(t.Context(), apart))
	t.Cleanup(func() { must(t, network.Remove(context.Background(), apart)) })
	return world{provisioned{e}, d, base.Digest, kernel.Digest, other.Digest, lan, apart}
}

func (w world) node(name string, id int) *spec.Node {
	return &spec.Node{
		Site: testSite, Name: name, ID: id, Engine: Name, MachineID: site.MachineID(testSite, name), Base: w.base, Kernel: w.kernel,
		NICs: []spec.NIC{{
			Name: "eth0", Network: w.lan.Name, Bridge: w.lan.Bridge, HostEnd: site.VethName(testSite, name, w.lan.Name),
			MAC: site.MAC(testSite, name, w.lan.Name), Address: fmt.Sprintf("%s%d/24", testSubnet, id+1), Gateway: testSubnet + "1", MTU: 1500,
		}},
	}
}

// onto puts a node on the routed network.
func onto(_ *testing.T, n *spec.Node, kind string) {
	nic := &n.NICs[0]
	nic.Network, nic.Kind, nic.Bridge = kind, kind, site.BridgeName(testSite, kind)
	nic.Address, nic.Gateway = fmt.Sprintf("%s%d/24", routedSubnet, n.ID+1), routedSubnet+"1"
	nic.Via, nic.HostEnd = nic.Gateway, site.RoutedName(testSite, testSite, n.Name, kind)
}

// reboot lets a guest reboot by itself: then it is another domain.
func (w world) reboot(t *testing.T, ref engine.Ref) {
	t.Helper()
	domain := w.machine(ref).domain()
	was, err := w.dom0.domain(domain)
	must(t, err)
	_ = w.Runner(ref).Run(t.Context(), host.Command{Args: []string{"kill", "-s", fmt.Sprint(int(reboots)), "1"}})
	eventually(t, "another domain", func() bool {
		is, err := w.dom0.domain(domain)
		return err == nil && is.ID != was.ID
	})
	eventually(t, "an agent", func() bool {
		return w.Runner(ref).Run(t.Context(), host.Command{Args: []string{"true"}}) == nil
	})
}

// TestEngine: guests of Xen are nodes as all others are, as far as a Dom0 that is played can tell: Xen and what only its guests' kernels do are not there.
func TestEngine(t *testing.T) {
	w := newWorld(t)
	routed := spec.Network{
		Site: testSite, Name: site.Routed, Bridge: site.BridgeName(testSite, site.Routed), Kind: site.Routed, MTU: 1500,
		Subnet: routedSubnet + "0/24", Gateway: routedSubnet + "1/24",
	}
	must(t, network.Make(t.Context(), routed))
	t.Cleanup(func() { must(t, network.Remove(context.Background(), routed)) })
	enginetest.Run(t, func(*testing.T) enginetest.Fixture {
		return enginetest.Fixture{
			Engine: w.provisioned, Site: testSite, Kernel: true, Bridge: w.apart.Bridge, Onto: onto, Kinds: []string{site.Routed}, Reboot: w.reboot,
			Node:    w.node,
			Relayer: func(n *spec.Node) { n.Layer = w.layer },
			Break: func(t *testing.T, n *spec.Node) {
				// A power cut may leave an empty record.
				dir := w.machine(engine.RefOf(n))
				must(t, w.Create(t.Context(), n))
				must(t, os.WriteFile(dir.File("node.json"), nil, 0o600))
			},
		}
	})
	t.Run("Mishaps", func(t *testing.T) { mishaps(t, w) })
}

// provisioned provides volumes before a node starts, as package local does.
type provisioned struct{ *Engine }

func (p provisioned) Start(ctx context.Context, ref engine.Ref) error {
	nodes, err := p.List(ctx, ref.Site)
	if err != nil {
		return err
	}
	for i := range nodes {
		n := &nodes[i].Node
		if n.ID != ref.ID {
			continue
		}
		for _, m := range n.Mounts {
			root := func(string) (int, int, error) { return 0, 0, nil }
			if err := volume.Provide(p.Dirs, n.Site, n.Name, m, root); err != nil {
				return err
			}
		}
	}
	return p.Engine.Start(ctx, ref)
}

// wantNothing wants that nothing is left of a node's domain, neither in Xen nor on the host.
func (w world) wantNothing(t *testing.T, n *spec.Node) {
	t.Helper()
	m := w.machine(engine.RefOf(n))
	if one, err := w.dom0.domain(m.domain()); err == nil {
		t.Errorf("domain %d is left", one.ID)
	}
	if all := m.Group().Processes(); len(all) > 0 {
		t.Errorf("processes %v are left", all)
	}
	for _, path := range []string{m.Run, filepath.Join("/sys/class/net", n.NICs[0].HostEnd), m.Starting(), m.Stopping(), m.Freezing()} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is left", path)
		}
	}
}

func (w world) state(t *testing.T, n *spec.Node) string {
	t.Helper()
	nodes, err := w.List(t.Context(), n.Site)
	must(t, err)
	for _, one := range nodes {
		if one.ID == n.ID {
			return string(one.State)
		}
	}
	return ""
}

// words are those of an error, if there is one.
func words(err error) string {
	if err == nil {
		return ""
	}
	return strings.TrimSpace(err.Error())
}

// soon is a context that ends in a moment.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}
