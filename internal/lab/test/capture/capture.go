// Package capture measures the highest rate of SPEAD heaps that a place receives without loss.
//
// It also measures how much processor time of the host that takes. The heaps arrive over UDP.
//
// It follows table 1 of the KAT-7 paper, which compared a bare host, virtual machines and
// containers as the machine that captures the data of the correlator. Heaps received are compared
// with heaps sent. The receiver listens before the first packet is sent. A trial does not count if
// the sender reached less than 99 % of the requested rate.
//
// Rates are in bits of SPEAD packets, without the headers of UDP, IP and Ethernet, as spead2's
// programs count them.
package capture

import (
	"context"
	"sync"
	"time"

	"orrery/internal/lab/place"
	"orrery/internal/lab/test"
	"orrery/internal/problem"
)

// The names of the figures.
const (
	lossless  = "lossless rate"
	paperRate = "lossless rate by the paper"
	hostCPU   = "host cpu"
	perGbit   = "cpu per Gb/s"
)

// capture is the test of this kind.
type capture struct {
	options

	last sync.Map // the last lossless rate by setting and copy, from which the next search starts
	fits commonBuffer
}

// commonBuffer holds the largest socket buffer that all places checked so far can have: the smallest that
// one of them got. The bare host may exceed net.core.rmem_max, and a node may not. With different
// buffers, the test would measure the sysctl.
type commonBuffer struct {
	mutex sync.Mutex
	bytes int
}

// record records the buffer that a place got, or 0 if unknown.
func (r *commonBuffer) record(bytes int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if bytes > 0 && (r.bytes == 0 || bytes < r.bytes) {
		r.bytes = bytes
	}
}

// limit returns the options with the buffer limited to the common one.
func (r *commonBuffer) limit(o options) options {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.bytes > 0 {
		o.Buffer = min(o.Buffer, test.Bytes(r.bytes))
	}
	return o
}

// New creates the test from its options.
func New(decode func(options any) error) (test.Test, error) {
	c := &capture{options: defaults()}
	if err := test.Read(decode, &c.options, c.check); err != nil {
		return nil, err
	}
	return c, nil
}

// Needs returns that there must be a far end, and Orrery itself unless spead2's programs are used.
func (c *capture) Needs() test.Needs {
	n := test.Needs{Far: true}
	if c.Program == ours {
		n.Tools = []string{place.Orrery}
	}
	return n
}

// Figures returns the rows of the table.
func (c *capture) Figures() []test.Figure {
	all := []test.Figure{{Name: lossless, Unit: "bit/s", Better: test.More, Aggregate: test.Sum}}
	if c.Paper {
		all = append(all, test.Figure{Name: paperRate, Unit: "bit/s", Better: test.More, Aggregate: test.Sum})
	}
	return append(all,
		// Busy share of all processors of the host at the lossless rate, minus the share when idle.
		test.Figure{Name: hostCPU, Unit: "1", Better: test.Less, Aggregate: test.Mean},
		// Processor seconds per gigabit, which is the number of busy processors per Gb/s.
		test.Figure{Name: perGbit, Unit: "s/Gbit", Better: test.Less, Aggregate: test.Mean})
}

// Time assumes about thirty trials, and twelve more for the paper's search.
func (c *capture) Time() time.Duration {
	trials := 30
	if c.Paper {
		trials += 12
	}
	each := c.Trial + 20*time.Millisecond
	if c.Program == spead2 {
		each += 500 * time.Millisecond
	}
	return time.Duration(trials)*each + time.Second
}

// Check sends a few heaps to the place.
func (c *capture) Check(ctx context.Context, t *test.Trial) error {
	if t.Far == nil || !t.Near.Address.IsValid() {
		return problem.New(problem.Unable, "the test needs a far end, which sends").At(t.Near.Name)
	}
	if c.Program == spead2 {
		for _, p := range []struct {
			at      *place.Place
			program string
		}{{t.Near, "spead2_recv"}, {t.Far, "spead2_send"}} {
			if _, err := p.at.Output(ctx, p.program, "--help"); err != nil {
				return problem.New(problem.Unable, "%s cannot be run", p.program).At(p.at.Name).Because(err).
					Try(`install spead2's programs in the place, or set program = "orrery"`)
			}
		}
	}
	p, err := c.open(ctx, t)
	if err != nil {
		return err
	}
	defer p.close()
	defer func() { c.fits.record(p.buffer()) }()
	// Try three times: a full buffer does not lose everything each time, but a firewall does.
	for range 3 {
		sent, got, err := p.trial(ctx, 50e6, 100*time.Millisecond)
		if err != nil {
			return err
		}
		if got.Heaps > 0 {
			return nil
		}
		if got.Packets > 0 {
			return problem.New(problem.Failed, "none of %d heaps arrived completely, but %d of %d packets", sent.Heaps,
				got.Packets, sent.Packets).
				At(t.Near.Name).Try("if packets of %d bytes are too large for the path, set packet = 1472", c.Packet)
		}
	}
	return problem.New(problem.Failed, "no packet from the far end to %v arrives", c.endpoint(t)).At(t.Near.Name).
		Try("check whether a firewall blocks UDP port %d", c.endpoint(t).Port())
}
