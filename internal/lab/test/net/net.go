// Package net measures the network between a place and the far end.
//
// It measures the throughput of TCP and UDP in both directions with one and with several streams,
// the rate of small packets, and round trips. It follows the tests of INFN (iperf, throughput of
// virtual against physical machines) and of CERN (iperf3 in containers). The tools are Debian's
// iperf3 (iperf3(1), its JSON) and sockperf (sockperf(3), ping-pong).
package net

import (
	"fmt"
	"time"

	"orrery/internal/lab/test"
)

// packetBytes is the payload of a small packet. With the headers of UDP, IPv4 and Ethernet, the
// frame has 106 bytes.
const packetBytes = 64

// net is the test of this kind.
type net struct{ options }

// New creates the test from its options.
func New(decode func(options any) error) (test.Test, error) {
	n := &net{defaults()}
	if err := test.Read(decode, &n.options, n.check); err != nil {
		return nil, err
	}
	return n, nil
}

// Needs returns the packages and that there must be a far end.
func (n *net) Needs() test.Needs {
	needs := test.Needs{Far: true}
	if n.usesIperf() {
		needs.Packages, needs.Runs = append(needs.Packages, "iperf3"), append(needs.Runs, "iperf3")
	}
	if n.RTT {
		needs.Packages, needs.Runs = append(needs.Packages, "sockperf"), append(needs.Runs, "sockperf")
	}
	return needs
}

// usesIperf reports whether the test runs iperf3.
func (n *net) usesIperf() bool { return len(n.parts()) > 0 && n.parts()[0].protocol != "" }

// Time returns the time of all measurements, including the start of a server for each.
func (n *net) Time() time.Duration {
	var all time.Duration
	for _, p := range n.parts() {
		all += time.Duration(n.Seconds+n.warmUp(p))*time.Second + 400*time.Millisecond
	}
	return all
}

// warmUp returns for how many seconds a part sends before it is measured, or 0 for UDP, which has
// no slow start.
func (n *net) warmUp(p part) int {
	if p.protocol != tcp {
		return 0
	}
	return n.WarmUp
}

// A part is one measurement of a trial.
type part struct {
	protocol  string // or "" for round trips
	direction string
	streams   int
	packets   bool // small packets
}

// parts returns the measurements of a trial, in order.
func (o *options) parts() []part {
	var all []part
	for _, p := range o.Protocols {
		for _, d := range o.Directions {
			for _, s := range o.Streams {
				all = append(all, part{protocol: p, direction: d, streams: s})
			}
		}
	}
	if o.Packets {
		for _, d := range o.Directions {
			all = append(all, part{protocol: udp, direction: d, streams: 1, packets: true})
		}
	}
	if o.RTT {
		all = append(all, part{})
	}
	return all
}

// The figures of round trips.
const (
	rttMedian = "rtt median"
	rttTail   = "rtt 99 %"
)

// name returns the figure of a part that moves data, which is also the prefix of its other figures.
func (p part) name() string {
	switch {
	case p.protocol == "":
		return "rtt"
	case p.packets:
		return "packets " + p.direction
	case p.streams == 1:
		return p.protocol + " " + p.direction + " 1 stream"
	}
	return fmt.Sprintf("%s %s %d streams", p.protocol, p.direction, p.streams)
}

func (p part) loss() string { return p.name() + " loss" }

// Figures returns the throughput of each part at the receiver, the loss of UDP, and the round
// trips.
func (n *net) Figures() []test.Figure {
	var all []test.Figure
	for _, p := range n.parts() {
		switch {
		case p.protocol == "":
			all = append(all, test.Figure{Name: rttMedian, Unit: "s", Better: test.Less, Aggregate: test.Mean},
				test.Figure{Name: rttTail, Unit: "s", Better: test.Less, Aggregate: test.Mean})
		case p.packets:
			all = append(all, test.Figure{Name: p.name(), Unit: "1/s", Better: test.More, Aggregate: test.Sum})
		default:
			all = append(all, test.Figure{Name: p.name(), Unit: "bit/s", Better: test.More, Aggregate: test.Sum})
			if p.protocol == udp {
				all = append(all, test.Figure{Name: p.loss(), Unit: "1", Better: n.lossDirection(), Aggregate: test.Mean})
			}
		}
	}
	return all
}

// lossDirection returns whether less loss is better. The loss of a sender without a rate limit is Neither:
// it depends on the sender as much as on the network.
func (n *net) lossDirection() test.Direction {
	if n.Rate == 0 {
		return test.Neither
	}
	return test.Less
}
