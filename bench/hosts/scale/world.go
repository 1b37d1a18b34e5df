package main

import (
	"context"
	"fmt"
	"net"

	"orrery/internal/apply"
	"orrery/internal/apply/remote"
	"orrery/internal/control/here"
	"orrery/internal/host/doctor"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/site"
)

// A world has the simulated hosts, each with the state that it reports.
type world struct {
	here.Machine
	hosts map[string]*observe.Host
}

func newWorld(n int) *world {
	w := &world{hosts: map[string]*observe.Host{}}
	for i := range n {
		name := fmt.Sprintf("h%d", i)
		w.hosts[name] = &observe.Host{
			Name: name, Cpus: 32, Online: "0-31", Memory: 64 << 30, Layers: map[string]bool{}, Settings: map[string]string{},
			Engines: map[string]observe.Capabilities{"lxc": {Containers: true, LiveLimits: true, MoveNIC: true,
				Remount: true, Keep: true}},
			Addresses: []observe.Address{{Prefix: address(i) + "/16", Link: "eth0", MTU: 1500}},
		}
	}
	return w
}

// absorb changes the hosts to the state that a plan leads to.
func (w *world) absorb(p *plan.Plan) {
	for _, s := range p.Steps {
		h := w.hosts[s.Host]
		switch s.Kind {
		case plan.PrepareHost:
			for key, value := range s.Settings {
				h.Settings[key] = value
			}
		case plan.BuildLayer:
			h.Layers[s.Layer.Digest] = true
		case plan.MakeNetwork:
			h.Networks = append(h.Networks, observe.Network{Network: *s.Network})
		case plan.WriteNames:
			h.Names = s.Names
		case plan.CreateNode:
			h.Nodes = append(h.Nodes, observe.Node{Node: *s.Node, State: observe.Running, Configured: true,
				Proven: s.Node.Config.Health, Active: true})
		}
	}
}

func (w *world) Allowed() error { return nil }

func (w *world) Self() remote.Greeting { return remote.Greeting{} }

// Reach connects to a helper on a simulated host.
func (w *world) Reach(ctx context.Context, h site.Host) (*remote.Link, error) {
	near, far := net.Pipe()
	self := remote.Greeting{Machine: h.Name, Hostname: h.Name}
	go remote.Serve(context.Background(), far, simulated{w, h.Name}, self) //nolint:errcheck // it ends with the connection
	return remote.Open(ctx, h.Name, near, "", func(cause error) error { return fmt.Errorf("host %s: %w", h.Name, cause) })
}

// simulated is a host as its helper sees it.
type simulated struct {
	*world
	name string
}

func (s simulated) Host(_, _ string, _ apply.Secrets) apply.Host {
	return apply.Host{State: known{of: s}, Releases: recorded{}}
}
func (s simulated) Inspect() doctor.Facts { return nil }

// known is the state of a simulated host.
type known struct {
	apply.StateHost
	of simulated
}

// recorded has the releases on a simulated host: none.
type recorded struct{ apply.ReleaseHost }

func (recorded) Read(context.Context) (observe.Releases, error) {
	return observe.Releases{}, nil
}

func (k known) Observe(context.Context, []string) (observe.Host, error) {
	return *k.of.hosts[k.of.name], nil
}
