package remote

import (
	"context"
	"fmt"
	"net"

	"orrery/internal/apply"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// Runner returns a Runner for a node of the remote host.
func (f nodeHost) Runner(n *spec.Node) (host.Runner, error) {
	at := f.at
	at.Node = n
	in, err := f.client.RunnerAt(n.Name, at)
	return nodeRunner{in, f.Link}, err
}

// A nodeRunner is a Runner for a node that goes through a helper. If the connection to the helper is lost,
// its errors say so instead of blaming the node.
type nodeRunner struct {
	host.Runner
	link *Link
}

// Run runs a command in the node.
func (w nodeRunner) Run(ctx context.Context, c host.Command) error {
	return w.link.lossOr(ctx, w.Runner.Run(ctx, c))
}

// Put writes files of the node.
func (w nodeRunner) Put(ctx context.Context, files ...host.File) error {
	return w.link.lossOr(ctx, w.Runner.Put(ctx, files...))
}

// Dial connects from the node.
func (w nodeRunner) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := w.Runner.Dial(ctx, network, address)
	return c, w.link.lossOr(ctx, err)
}

// Console returns an Unable problem: consoles of remote nodes are not supported yet.
func (f nodeHost) Console(n *spec.Node) (host.Console, error) { return nil, f.onlyThere(n, "console") }

// Screen returns an Unable problem: screens of remote nodes are not supported yet.
func (f nodeHost) Screen(n *spec.Node) (host.Screen, error) { return nil, f.onlyThere(n, "screen") }

func (f *remoteHost) onlyThere(n *spec.Node, what string) error {
	return problem.New(problem.Unable, "node %s is on host %s, and its %s is available only there", n.Name, f.at.Host, what).
		Try("run orrery %s %s on that host; orrery shell %[2]s gives a terminal from here", what, n.Name)
}

// ReadUsage reads the usage of nodes on the remote host.
func (f nodeHost) ReadUsage(ctx context.Context, nodes []observe.Node, before map[int]host.Sample) ([]apply.Reading,
	error) {
	all, err := readUsageMethod.call(ctx, f.remoteHost, usageRequest{nodes, before})
	if err == nil && len(all) != len(nodes) {
		err = fmt.Errorf("%d of %d nodes were read", len(all), len(nodes))
	}
	return all, err
}

// usageRequest is the nodes whose usage is read, and earlier samples.
type usageRequest struct {
	Nodes  []observe.Node      `json:"nodes"`
	Before map[int]host.Sample `json:"before,omitzero"`
}

var readUsageMethod = method[usageRequest, []apply.Reading]{
	name: "meter", callOptions: callOptions{maxBytes: listMaxBytes, long: true, abandoned: true},
	answer: func(ctx context.Context, c *serverCall, ask usageRequest) ([]apply.Reading, error) {
		return c.host().Nodes.ReadUsage(ctx, ask.Nodes, ask.Before)
	},
}
