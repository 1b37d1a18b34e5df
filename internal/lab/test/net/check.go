package net

import (
	"context"

	"orrery/internal/lab/place"
	"orrery/internal/lab/test"
	"orrery/internal/lab/test/net/serve"
	"orrery/internal/problem"
	"orrery/internal/text/pattern"
)

// The expected output of --version.
var (
	iperf    = pattern.New(`^iperf 3\.`)
	sockperf = pattern.New(`(?m)^sockperf, version 3\.`)
)

// Check runs the programs at both ends and checks that the ports at the far end are free.
func (n *net) Check(ctx context.Context, t *test.Trial) error {
	if err := t.NeedFar(); err != nil {
		return err
	}
	for _, p := range []*place.Place{t.Near, t.Far} {
		if n.usesIperf() {
			if _, err := test.Known(ctx, p, iperf(), "Debian's package iperf3", "iperf3", "--version"); err != nil {
				return err
			}
		}
		if n.RTT {
			if _, err := test.Known(ctx, p, sockperf(), "Debian's package sockperf", "sockperf", "--version"); err != nil {
				return err
			}
		}
	}
	if n.RTT && !t.Far.Address.Unmap().Is4() {
		return problem.New(problem.Unable, "sockperf 3.7 supports only IPv4, and the far end is %s", t.Far.Address).
			At(t.Near.Name).Try("set rtt = false")
	}
	for _, protocol := range []serve.Protocol{serve.TCP, serve.UDP} {
		if err := serve.WaitUntilFree(ctx, t.Far, protocol, n.port(t)); err != nil {
			return err
		}
	}
	return nil
}

func (n *net) port(t *test.Trial) int { return n.Port + t.Copy }
