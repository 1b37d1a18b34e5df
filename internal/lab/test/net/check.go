package net

import (
	"context"
	"regexp"

	"orrery/internal/lab/place"
	"orrery/internal/lab/test"
	"orrery/internal/lab/test/net/serve"
	"orrery/internal/problem"
)

// Check runs the programs at both ends, and sees that the ports at the far end are free.
func (n *net) Check(ctx context.Context, t *test.Trial) error {
	if t.Far == nil || !t.Far.Address.IsValid() {
		return problem.New(problem.Unable, "there is no far end to talk with").At(t.Near.Name)
	}
	for _, p := range []*place.Place{t.Near, t.Far} {
		if n.flows() {
			if err := runs(ctx, p, "iperf3", regexp.MustCompile(`^iperf 3\.`)); err != nil {
				return err
			}
		}
		if n.RTT {
			if err := runs(ctx, p, "sockperf", regexp.MustCompile(`(?m)^sockperf, version 3\.`)); err != nil {
				return err
			}
		}
	}
	if n.RTT && !t.Far.Address.Unmap().Is4() {
		return problem.New(problem.Unable, "sockperf 3.7 knows IPv4 only, and the far end is %s", t.Far.Address).At(t.Near.Name).Try("set rtt = false")
	}
	for _, protocol := range []serve.Protocol{serve.TCP, serve.UDP} {
		if err := serve.Free(ctx, t.Far, protocol, n.port(t)); err != nil {
			return err
		}
	}
	return nil
}

func (n *net) port(t *test.Trial) int { return n.Port + t.Copy }

// runs sees that a program can be run in a place and is the one that is meant.
func runs(ctx context.Context, p *place.Place, program string, version *regexp.Regexp) error {
	out, err := p.Output(ctx, program, "--version")
	if err != nil {
		return problem.New(problem.Unable, "%s cannot be run", program).At(p.Name).Because(err).Try("its layer must have the package %s", program)
	}
	if !version.Match(out) {
		return problem.New(problem.Unable, "%s is another program than the lab knows: --version prints %.60q", program, out).At(p.Name).
			Try("the layer must have Debian's package %s", program)
	}
	return nil
}
