package kvm

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
	"orrery/internal/image"
	"orrery/internal/network"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/volume"
	"orrery/test/need"
)

const (
	testSite   = "it-kvm"
	testSubnet = "10.99.216."
)

// ground is an engine with layers and bridges for its nodes.
type ground struct {
	provisioned
	base, kernel, layer string
	lan, apart          spec.Network // the same addresses
}

func newGround(t *testing.T) ground {
	t.Helper()
	need.Integration(t)
	need.Guest(t)
	store := image.Open(need.State())
	dirs := host.Dirs{State: filepath.Join(need.State(), "kvm"), Run: "/run/orrery-test-kvm"}
	e := New(dirs, store)
	clean := func() {
		nodes, err := e.List(context.Background(), "")
		if err != nil {
			t.Fatal(err)
		}
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
	kernel := spec.KernelLayer(site.Mirror{}, base)
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
	return ground{provisioned{e}, base.Digest, kernel.Digest, other.Digest, lan, apart}
}

func (g ground) node(name string, id int) *spec.Node {
	return &spec.Node{
		Site: testSite, Name: name, ID: id, Engine: Name, MachineID: site.MachineID(testSite, name), Base: g.base, Kernel: g.kernel,
		NICs: []spec.NIC{{
			Name: "eth0", Network: g.lan.Name, Bridge: g.lan.Bridge, HostEnd: site.VethName(testSite, name, g.lan.Name),
			MAC: site.MAC(testSite, name, g.lan.Name), Address: fmt.Sprintf("%s%d/24", testSubnet, id+1), Gateway: testSubnet + "1", MTU: 1500,
		}},
	}
}

// routedSubnet is of the network of that kind.
const routedSubnet = "10.99.218."

// onto puts a node on the routed network.
func onto(_ *testing.T, n *spec.Node, kind string) {
	nic := &n.NICs[0]
	nic.Network, nic.Kind, nic.Bridge = kind, kind, site.BridgeName(testSite, kind)
	nic.Address, nic.Gateway = fmt.Sprintf("%s%d/24", routedSubnet, n.ID+1), routedSubnet+"1"
	nic.Via, nic.HostEnd = nic.Gateway, site.RoutedName(testSite, testSite, n.Name, kind)
}

// reboot lets a guest reboot by itself.
func (g ground) reboot(t *testing.T, ref engine.Ref) {
	t.Helper()
	boot := func() string {
		var out strings.Builder
		_ = g.Runner(ref).Run(t.Context(), host.Command{Args: []string{"cat", "/proc/sys/kernel/random/boot_id"}, Stdout: &out})
		return out.String()
	}
	was := boot()
	_ = g.Runner(ref).Run(t.Context(), host.Command{Args: []string{"systemctl", "--no-block", "reboot"}})
	for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		if now := boot(); now != "" && now != was {
			return
		}
		if time.Since(begun) > 6*time.Minute {
			t.Fatalf("node %s does not come back", ref.Name)
		}
	}
}

func TestEngine(t *testing.T) {
	g := newGround(t)
	routed := spec.Network{
		Site: testSite, Name: site.Routed, Bridge: site.BridgeName(testSite, site.Routed), Kind: site.Routed, MTU: 1500,
		Subnet: routedSubnet + "0/24", Gateway: routedSubnet + "1/24",
	}
	must(t, network.Make(t.Context(), routed))
	t.Cleanup(func() { must(t, network.Remove(context.Background(), routed)) })
	enginetest.Run(t, func(*testing.T) enginetest.Fixture {
		return enginetest.Fixture{
			Engine: g.provisioned, Site: testSite, Kernel: true, Bridge: g.apart.Bridge, Within: 6 * time.Minute, Onto: onto, Kinds: []string{site.Routed}, Reboot: g.reboot,
			Node:    g.node,
			Relayer: func(n *spec.Node) { n.Layer = g.layer },
			Break: func(t *testing.T, n *spec.Node) {
				// A power cut may leave an empty record.
				dir := g.machine(engine.RefOf(n))
				must(t, g.Create(t.Context(), n))
				must(t, os.WriteFile(dir.File("node.json"), nil, 0o600))
			},
		}
	})
}

// provisioned provides volumes before a node starts, as package local does. Its guests boot no further than to a systemd that takes orders: in emulation, all that
// Debian starts besides takes most of the time. TestMachines and TestMixed boot it all.
type provisioned struct{ *Engine }

func (p provisioned) Create(ctx context.Context, n *spec.Node) error {
	if err := p.Engine.Create(ctx, n); err != nil {
		return err
	}
	nothing := host.File{Path: "/etc/systemd/system/default.target", Content: []byte("[Unit]\nDefaultDependencies=no\n"), Mode: 0o644}
	return p.Inject(ctx, engine.RefOf(n), nothing)
}

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
		if err := p.provide(n); err != nil {
			return err
		}
	}
	return p.Engine.Start(ctx, ref)
}

func (p provisioned) Remount(ctx context.Context, n *spec.Node) error {
	if err := p.provide(n); err != nil {
		return err
	}
	return p.Engine.Remount(ctx, n)
}

func (p provisioned) provide(n *spec.Node) error {
	for _, m := range n.Mounts {
		root := func(string) (int, int, error) { return 0, 0, nil }
		if err := volume.Provide(p.Dirs, n.Site, n.Name, m, root); err != nil {
			return err
		}
	}
	return nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
