package remote

import (
	"context"
	"net"
	"time"

	"orrery/internal/apply"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// Runner gives the way into a node.
func (f *far) Runner(n *spec.Node) (host.Runner, error) {
	at := f.at
	at.Node = n
	in, err := f.client.RunnerAt(n.Name, at)
	return way{in, f.Link}, err
}

// A way leads into a node by way of a helper. If that is lost, that is what went wrong, and not the node.
type way struct {
	host.Runner
	link *Link
}

// Run runs a command in the node.
func (w way) Run(ctx context.Context, c host.Command) error {
	return w.link.unlessLost(ctx, w.Runner.Run(ctx, c))
}

// Put writes files of the node.
func (w way) Put(ctx context.Context, files ...host.File) error {
	return w.link.unlessLost(ctx, w.Runner.Put(ctx, files...))
}

// Dial connects from the node.
func (w way) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := w.Runner.Dial(ctx, network, address)
	return c, w.link.unlessLost(ctx, err)
}

// Console cannot be had from here yet.
func (f *far) Console(n *spec.Node) (host.Console, error) { return nil, f.onlyThere(n, "console") }

// Screen cannot be had from here yet.
func (f *far) Screen(n *spec.Node) (host.Screen, error) { return nil, f.onlyThere(n, "screen") }

func (f *far) onlyThere(n *spec.Node, what string) error {
	return problem.New(problem.Unable, "node %s is on host %s, and its %s can be had only there", n.Name, f.at.Host, what).
		Try("run orrery %s %s on that host; orrery shell %[2]s gives a terminal from here", what, n.Name)
}

// Sample reads what the kernel has counted of a node.
func (f *far) Sample(n *spec.Node) host.Sample {
	nothing := host.Sample{At: time.Now(), CPU: -1, Memory: -1, Pids: -1}
	ctx, cancel := context.WithTimeout(context.Background(), quickly)
	defer cancel()
	s, err := sampleMethod.call(ctx, f, *n)
	if err != nil {
		return nothing
	}
	return s
}

var sampleMethod = method[spec.Node, host.Sample]{
	name: "sample", traits: traits{abandoned: true},
	answer: func(_ context.Context, c *received, n spec.Node) (host.Sample, error) {
		return c.host().Sample(&n), nil
	},
}

// Usage tells what a node uses.
func (f *far) Usage(ctx context.Context, n *observe.Node, before, now host.Sample) *apply.Usage {
	u, err := usageMethod.call(ctx, f, used{*n, before, now})
	if err != nil || u == nil {
		return &apply.Usage{Processors: -1, Memory: -1, Pids: -1, Disk: -1, Volumes: -1, Limits: n.Limits}
	}
	return u
}

// A used node is one whose usage is worked out from two samples.
type used struct {
	Node   observe.Node `json:"node"`
	Before host.Sample  `json:"before"`
	Now    host.Sample  `json:"now"`
}

var usageMethod = method[used, *apply.Usage]{
	name: "usage", traits: traits{long: true, abandoned: true},
	answer: func(ctx context.Context, c *received, ask used) (*apply.Usage, error) {
		return c.host().Usage(ctx, &ask.Node, ask.Before, ask.Now), nil
	},
}
