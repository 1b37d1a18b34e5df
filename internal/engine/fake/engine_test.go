package fake_test

import (
	"context"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"testing"

	"orrery/internal/engine"
	"orrery/internal/engine/enginetest"
	"orrery/internal/engine/fake"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/volume"
	"orrery/test/need"
)

func TestEngine(t *testing.T) { conforms(t, fake.New().Can) }

// TestModestEngine: an engine without optional abilities also conforms.
func TestModestEngine(t *testing.T) { conforms(t, observe.Capabilities{}) }

// TestDisk: nodes with directories also conform.
func TestDisk(t *testing.T) {
	need.SameIDs(t)
	enginetest.Run(t, func(t *testing.T) enginetest.Fixture {
		dirs := host.Dirs{State: t.TempDir(), Run: t.TempDir()}
		d := fake.OnDisk(dirs)
		f := fixture(d.Engine)
		f.Engine = provided{d, dirs}
		f.Break = nil // what is made on disk is complete or missing
		return f
	})
}

// provided provides volumes, as package local does.
type provided struct {
	*fake.Disk
	dirs host.Dirs
}

func (p provided) Create(ctx context.Context, n *spec.Node) error {
	if err := p.provide(n); err != nil {
		return err
	}
	return p.Disk.Create(ctx, n)
}

func (p provided) Change(ctx context.Context, n *spec.Node) error {
	if err := p.provide(n); err != nil {
		return err
	}
	return p.Disk.Change(ctx, n)
}

func (p provided) Remount(ctx context.Context, n *spec.Node) error {
	if err := p.provide(n); err != nil {
		return err
	}
	return p.Disk.Remount(ctx, n)
}

func (p provided) provide(n *spec.Node) error {
	for _, m := range n.Mounts {
		if err := os.MkdirAll(volume.Path(p.dirs, n.Site, n.Name, m), 0o700); err != nil {
			return err
		}
	}
	return nil
}

func conforms(t *testing.T, can observe.Capabilities) {
	enginetest.Run(t, func(*testing.T) enginetest.Fixture {
		e := fake.New()
		e.Can = can
		return fixture(e)
	})
}

func fixture(e *fake.Engine) enginetest.Fixture {
	return enginetest.Fixture{
		Engine: e,
		Site:   "suite",
		Bridge: site.BridgeName(site.Quarantine("suite", 701), "cam"),
		Node:   nodeOf,
		ConnectToKind: func(_ *testing.T, n *spec.Node, kind string) {
			nic := &n.NICs[0]
			nic.Network, nic.Kind, nic.Parent = kind, kind, "enp"+strconv.Itoa(n.ID)
			nic.Bridge = site.BridgeName("suite", kind)
		},
		Relayer: func(n *spec.Node) { n.Layer += "-other" },
		InForce: func(_ *testing.T, ref engine.Ref) site.Limits {
			all, _ := e.List(context.Background(), ref.Site)
			for _, n := range all {
				if n.ID == ref.ID {
					return n.Limits
				}
			}
			return site.Limits{}
		},
		Break: func(t *testing.T, n *spec.Node) {
			e.Crash("Create", n.Name, 1)
			if err := e.Create(t.Context(), n); err == nil {
				t.Fatal("a crash was ordered, and none came")
			}
		},
		Serve: func(t *testing.T, ref engine.Ref, port int, text string) {
			err := e.Listen(ref, strconv.Itoa(port), func(c net.Conn) {
				_, _ = io.WriteString(c, text)
				_ = c.Close()
			})
			if err != nil {
				t.Fatal(err)
			}
		},
	}
}

func nodeOf(name string, id int) *spec.Node {
	return &spec.Node{
		Site: "suite", Name: name, ID: id, Engine: "fake", MachineID: site.MachineID("suite", name), Base: "base",
		Layer: "layer",
		NICs: []spec.NIC{{
			Name: "eth0", Network: "cam", Bridge: site.BridgeName("suite", "cam"),
			HostIfName: site.VethName("suite", name, "cam"),
			MAC:        site.MAC("suite", name, "cam"),
			Address:    netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 9, byte(id >> 8), byte(id + 1)}), 16), Gateway: "10.9.0.1",
			MTU: 1500,
		}},
	}
}
