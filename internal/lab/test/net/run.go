package net

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"orrery/internal/host"
	"orrery/internal/lab/test"
	"orrery/internal/lab/test/net/serve"
	"orrery/internal/problem"
)

// detail is stored in the bundle beside the figures.
type detail struct {
	MTU      endMTUs          `json:"mtu"`
	Datagram int              `json:"datagram"` // UDP payload in bytes, except for small packets
	Flows    map[string]*flow `json:"flows,omitempty"`
	RTT      *trips           `json:"rtt,omitempty"`
}

// Run measures the parts one after another. In each part, the copies start together.
func (n *net) Run(ctx context.Context, t *test.Trial) (test.Result, error) {
	mtus := endMTUs{Near: mtu(ctx, t.Near), Far: mtu(ctx, t.Far)}
	d := detail{MTU: mtus, Datagram: mtus.datagram(t.Far), Flows: map[string]*flow{}}
	r := test.Result{Labels: mtus.labels(), Detail: &d}
	for _, p := range n.parts() {
		if p.protocol == "" {
			seen, err := n.trips(ctx, t)
			if err != nil {
				return test.Result{}, err
			}
			d.RTT = seen
			r.Samples = append(r.Samples, test.Sample{Figure: rttMedian, Value: seen.Median},
				test.Sample{Figure: rttTail, Value: seen.Tail})
			continue
		}
		f, labels, err := n.flow(ctx, t, p, d.Datagram)
		if err != nil {
			return test.Result{}, err
		}
		d.Flows[p.name()] = f
		r.Samples = append(r.Samples, p.samples(f)...)
		r.Series = append(r.Series, p.series(f)...)
		r.Labels = append(r.Labels, labels...)
	}
	return r, nil
}

func (p part) samples(f *flow) []test.Sample {
	if p.packets {
		return []test.Sample{{Figure: p.name(), Value: f.packetRate(packetBytes)}}
	}
	all := []test.Sample{{Figure: p.name(), Value: f.Received}}
	if p.protocol == udp {
		all = append(all, test.Sample{Figure: p.loss(), Value: f.loss()})
	}
	return all
}

// series returns the flow's values per second, or nil if there are fewer than two. iperf3 reports
// the values of its client. For outgoing UDP these are bytes sent, which is not the figure.
func (p part) series(f *flow) []test.Series {
	if p.packets || p.protocol == udp && p.direction == forward || len(f.series) < 2 {
		return nil
	}
	return []test.Series{{Figure: p.name(), Step: 1, Values: f.series}}
}

// flow measures one part with iperf3. It starts a server that serves exactly one client.
func (n *net) flow(ctx context.Context, t *test.Trial, p part, datagram int) (*flow, []test.Label, error) {
	server, err := serve.Start(ctx, t.Far, serve.TCP, n.port(t),
		host.Command{Args: t.Far.Command("iperf3", "-s", "-1", "-p", strconv.Itoa(n.port(t)))})
	if err != nil {
		return nil, nil, err
	}
	defer server.WaitOrStop()
	before, err := t.Near.Traffic(ctx)
	if err != nil {
		return nil, nil, err
	}
	out, err := t.Record(ctx, strings.ReplaceAll(p.name(), " ", "-")+".json", "iperf3", n.arguments(t, p, datagram)...)
	f, unread := parseIperf(out)
	if err = moreSpecific(err, unread); err != nil {
		server.Stop()
		return nil, nil, clientError("iperf3", t, p.name(), err, server)
	}
	after, err := t.Near.Traffic(ctx)
	if err != nil {
		return nil, nil, err
	}
	labels := append(n.labelUnreached(p, f), n.labelSmallWindow(p, f)...)
	return f, append(labels, checkPath(t.Near, p, f, before, after)...), nil
}

// arguments returns the arguments of the iperf3 client. The client always runs at the near end,
// because only the measured command starts after the barrier.
func (n *net) arguments(t *test.Trial, p part, datagram int) []string {
	args := []string{"-c", t.Far.Address.String(), "-p", strconv.Itoa(n.port(t)), "-t", strconv.Itoa(n.Seconds), "-P",
		strconv.Itoa(p.streams), "-J",
		"--connect-timeout", "5000"}
	if n.Window > 0 && !p.packets {
		args = append(args, "-w", strconv.FormatInt(int64(n.Window), 10))
	}
	if warmUp := n.warmUp(p); warmUp > 0 {
		args = append(args, "-O", strconv.Itoa(warmUp))
	}
	if p.direction == reverse {
		args = append(args, "-R")
	}
	if p.protocol == udp {
		each := int64(n.Rate) / int64(p.streams) // the rate of iperf3 applies to one stream
		if p.packets {
			datagram, each = packetBytes, 0
		}
		args = append(args, "-u", "-b", strconv.FormatInt(each, 10), "-l", strconv.Itoa(datagram), "--udp-counters-64bit")
	}
	return args
}

// labelUnreached returns a label if the sender sent less than the requested rate.
func (n *net) labelUnreached(p part, f *flow) []test.Label {
	if p.protocol != udp || p.packets || n.Rate == 0 || f.Sent >= 0.99*float64(n.Rate) {
		return nil
	}
	return []test.Label{{
		Name: "sender", Where: p.name(), Why: fmt.Sprintf("the sender sent %.4g bit/s instead of %.4g",
			f.Sent, float64(n.Rate)),
		Cure: "decrease the rate, or give the sending end more processor time",
	}}
}

// labelSmallWindow returns a label if the kernel granted a smaller window than requested. The kernel doubles
// the requested size for its own bookkeeping (socket(7)), and iperf3 itself stops if it gets less
// than requested.
func (n *net) labelSmallWindow(p part, f *flow) []test.Label {
	least := int64(min(f.SendBuffer, f.ReceiveBuffer))
	if n.Window == 0 || p.packets || least == 0 || least >= 2*int64(n.Window) {
		return nil
	}
	return []test.Label{{
		Name: "window", Where: p.name(), Why: fmt.Sprintf("the sockets have a window of %d bytes instead of %s",
			least/2, n.Window),
		Cure: "increase net.core.rmem_max and net.core.wmem_max",
	}}
}

// trips measures round trips with sockperf.
func (n *net) trips(ctx context.Context, t *test.Trial) (*trips, error) {
	at := []string{"-i", t.Far.Address.Unmap().String(), "-p", strconv.Itoa(n.port(t))}
	server, err := serve.Start(ctx, t.Far, serve.UDP, n.port(t),
		host.Command{Args: t.Far.Command("sockperf", append([]string{"server"}, at...)...)})
	if err != nil {
		return nil, err
	}
	defer server.Stop()
	out, err := t.Record(ctx, "rtt.txt", "sockperf",
		append([]string{"ping-pong", "-t", strconv.Itoa(n.Seconds), "--full-rtt"}, at...)...)
	seen, unread := parseSockperf(out)
	if err = moreSpecific(err, unread); err != nil {
		server.Stop()
		return nil, clientError("sockperf", t, "rtt", err, server)
	}
	return seen, nil
}

// moreSpecific returns the more specific error: how a client ended, or what is wrong with its output.
func moreSpecific(ended, unread error) error {
	if tells := toolError(""); ended == nil || errors.As(unread, &tells) {
		return unread
	}
	return ended
}

// clientError returns an error for a client that produced no figures. It adds the last line that the
// server printed.
func clientError(program string, t *test.Trial, part string, err error, server *serve.Server) error {
	p := problem.New(problem.Failed, "%s: %s", program, part).At(t.Near.Name).Because(err)
	if text := lastLine(server.Output()); text != "" {
		p = p.Try("the last output of the server at the far end is: %s", text)
	}
	return p
}

func lastLine(text string) string {
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
