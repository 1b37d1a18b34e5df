package enginetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/image/rootfs"
	"orrery/internal/network"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/volume"
	"orrery/test/need"

	"golang.org/x/sys/unix"
)

// DirsOf returns the directories for testing nodes of a real engine. No other test uses them.
func DirsOf(name string) host.Dirs {
	return host.Dirs{State: filepath.Join(need.State(), "engine", name), Run: need.Run() + "-" + name}
}

// Clean destroys the nodes of an engine and removes its directories. It does so now, in case a
// killed test run has left something, and again after the test.
func Clean(t *testing.T, e engine.Engine, dirs host.Dirs) {
	t.Helper()
	clean := func() {
		unmountBelow(t, dirs.State)
		sweepAll(t, e, dirs)
		nodes, err := e.List(context.Background(), "")
		must(t, err)
		for i := range nodes {
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
	must(t, os.MkdirAll(dirs.State, 0o711)) // users that nodes run as must be able to pass through
}

// sweepAll ends and removes what killed runs left of any site.
func sweepAll(t *testing.T, e engine.Engine, dirs host.Dirs) {
	t.Helper()
	sweeper, ok := e.(engine.Sweeper)
	sites, err := os.ReadDir(filepath.Join(dirs.State, "sites"))
	if !ok || errors.Is(err, fs.ErrNotExist) {
		return
	}
	must(t, err)
	for _, site := range sites {
		must(t, sweeper.Sweep(context.Background(), site.Name()))
	}
}

// unmountBelow unmounts what tests that were killed have mounted below a directory.
func unmountBelow(t *testing.T, dir string) {
	t.Helper()
	all, err := rootfs.MountsOf("self")
	must(t, err)
	for _, m := range slices.Backward(all) {
		if strings.HasPrefix(m.At, dir+"/") {
			must(t, unix.Unmount(m.At, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW))
		}
	}
}

// An Env is what the nodes of a real engine need: layers, and two bridges.
type Env struct {
	Base, Layer string       // digests of layers; Layer is an alternative for Relayer
	Kernel      string       // digest of the kernel layer for machines, set by BuildKernel
	LAN, Apart  spec.Network // two bridges with the same subnet

	of     *nodedir.Nodes
	subnet string
}

// NewEnv makes an Env for nodes of an engine in a site, whose addresses begin with subnet
// ("10.99.1.").
func NewEnv(t *testing.T, of *nodedir.Nodes, key, subnet string) Env {
	t.Helper()
	base := baseLayer()
	must(t, of.Store.BuildBase(t.Context(), base, site.Mirror{}, logTo(t)))
	other := *base
	other.Digest = spec.DigestBytes([]byte("another layer of " + t.Name()))
	other.Base, other.Title = base.Digest, "debian + another"
	fill := func(ctx context.Context, in host.Runner) error {
		return in.Put(ctx, host.File{Path: "/etc/another", Content: []byte("layer\n"), Mode: 0o644})
	}
	must(t, of.Store.BuildLayer(t.Context(), &other, site.Mirror{}, fill, logTo(t)))

	lan := spec.Network{Site: key, Name: "lan", Bridge: site.BridgeName(key, "lan"), Subnet: subnet + "0/24",
		Gateway: subnet + "1/24", MTU: 1500}
	apart := spec.Network{Site: site.Quarantine(key, 701), Name: "lan",
		Bridge: site.BridgeName(site.Quarantine(key, 701), "lan"), Subnet: lan.Subnet, MTU: 1500}
	Network(t, lan)
	Network(t, apart)
	return Env{Base: base.Digest, Layer: other.Digest, LAN: lan, Apart: apart, of: of, subnet: subnet}
}

func baseLayer() *spec.Layer {
	return spec.Base(site.Mirror{}, site.Image{Name: "debian", Suite: "bookworm"})
}

func logTo(t *testing.T) func(string) { return func(text string) { t.Log(text) } }

// BuildKernel provides the small kernel that machines boot from.
func (g *Env) BuildKernel(t *testing.T) {
	t.Helper()
	kernel := spec.KernelLayer(site.Mirror{}, baseLayer())
	fill := func(ctx context.Context, in host.Runner) error {
		return g.of.Store.Cache.FillKernel(ctx, in, kernel, io.Discard)
	}
	must(t, g.of.Store.BuildLayer(t.Context(), kernel, site.Mirror{}, fill, logTo(t)))
	g.Kernel = kernel.Digest
}

// Network makes a network and removes it when the test ends.
func Network(t *testing.T, n spec.Network) {
	t.Helper()
	must(t, network.Make(t.Context(), n, func() ([]network.Port, error) { return nil, nil }))
	t.Cleanup(func() { must(t, network.Remove(context.Background(), n)) })
}

// Node returns the spec of a node on the first bridge.
func (g Env) Node(name string, id int) *spec.Node {
	key := g.LAN.Site
	return &spec.Node{
		Site: key, Name: name, ID: id, Engine: g.of.Engine, MachineID: site.MachineID(key, name), Base: g.Base,
		Kernel: g.Kernel,
		NICs: []spec.NIC{{
			Name: "eth0", Network: g.LAN.Name, Bridge: g.LAN.Bridge, HostIfName: site.VethName(key, name, g.LAN.Name),
			MAC: site.MAC(key, name, g.LAN.Name), Address: addressIn(g.subnet, id), Gateway: g.subnet + "1", MTU: 1500,
		}},
	}
}

// addressIn returns the address of a node in a subnet such as "10.8.67.".
func addressIn(subnet string, id int) netip.Prefix {
	return netip.MustParsePrefix(fmt.Sprintf("%s%d/24", subnet, id+1))
}

// NetworkOfKind returns a network of another kind. The kind is also its name.
func (g Env) NetworkOfKind(kind, subnet string) spec.Network {
	key := g.LAN.Site
	return spec.Network{Site: key, Name: kind, Bridge: site.BridgeName(key, kind), Kind: kind, Subnet: subnet + "0/24",
		Gateway: subnet + "1/24", MTU: 1500}
}

// ConnectToKind puts a node on such a network.
func ConnectToKind(n *spec.Node, kind, subnet string) {
	nic := &n.NICs[0]
	nic.Network, nic.Kind, nic.Bridge = kind, kind, site.BridgeName(n.Site, kind)
	nic.Address, nic.Gateway = addressIn(subnet, n.ID), subnet+"1"
	if kind == site.Routed {
		nic.Via, nic.HostIfName = nic.Gateway, site.RoutedName(n.Site, n.Site, n.Name, kind)
	}
}

// Fixture returns a Fixture for an engine whose nodes use the Env. The caller sets what only the
// engine knows.
func (g Env) Fixture(e engine.Engine) Fixture {
	return Fixture{
		Engine: e, Site: g.LAN.Site, Kernel: true, Bridge: g.Apart.Bridge,
		Node:    g.Node,
		Relayer: func(n *spec.Node) { n.Layer = g.Layer },
		Break: func(t *testing.T, n *spec.Node) { // a power cut may leave an empty record
			must(t, e.Create(t.Context(), n))
			must(t, os.WriteFile(g.of.Dir(engine.RefOf(n)).File("node.json"), nil, 0o600))
		},
	}
}

// AllowRouted lets nodes of the suite also be on a routed network, and on no other kind besides bridges.
func (g Env) AllowRouted(t *testing.T, subnet string, f *Fixture) {
	t.Helper()
	Network(t, g.NetworkOfKind(site.Routed, subnet))
	f.Kinds = []string{site.Routed}
	f.ConnectToKind = func(_ *testing.T, n *spec.Node, kind string) { ConnectToKind(n, kind, subnet) }
}

// CreateVolumes creates the volumes of a node, as package apply/local does before the node starts.
func CreateVolumes(dirs host.Dirs, n *spec.Node) error {
	root := volume.NodeRoot{Owner: func(string) (int, int, error) { return 0, 0, nil }}
	for _, m := range n.Mounts {
		if err := volume.Provide(context.Background(), dirs, n.Site, n.Name, m, root); err != nil {
			return err
		}
	}
	return nil
}

// CreateRecordedVolumes creates the recorded volumes of a node.
func CreateRecordedVolumes(of *nodedir.Nodes, ref engine.Ref) error {
	r, err := of.Record(ref)
	if err != nil {
		return err
	}
	return CreateVolumes(of.Dirs, &r.Node)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
