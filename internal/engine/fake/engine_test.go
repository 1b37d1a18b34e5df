package fake_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"testing"

	"orrery/internal/engine"
	"orrery/internal/engine/enginetest"
	"orrery/internal/engine/fake"
	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

func TestEngine(t *testing.T) { conforms(t, fake.New().Can) }

// TestModestEngine: so does one that can do no more than it must.
func TestModestEngine(t *testing.T) { conforms(t, observe.Capabilities{}) }

func conforms(t *testing.T, can observe.Capabilities) {
	enginetest.Run(t, func(*testing.T) enginetest.Fixture {
		e := fake.New()
		e.Can = can
		return enginetest.Fixture{
			Engine: e,
			Site:   "suite",
			Bridge: site.BridgeName(site.Quarantine("suite", 701), "cam"),
			Node:   nodeOf,
			Onto: func(_ *testing.T, n *spec.Node, kind string) {
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
	})
}

func nodeOf(name string, id int) *spec.Node {
	return &spec.Node{
		Site: "suite", Name: name, ID: id, Engine: "fake", MachineID: site.MachineID("suite", name), Base: "base", Layer: "layer",
		NICs: []spec.NIC{{
			Name: "eth0", Network: "cam", Bridge: site.BridgeName("suite", "cam"), HostEnd: site.VethName("suite", name, "cam"),
			MAC: site.MAC("suite", name, "cam"), Address: fmt.Sprintf("10.9.0.%d/24", id+1), Gateway: "10.9.0.1", MTU: 1500,
		}},
	}
}
