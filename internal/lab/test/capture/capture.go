// Package capture measures at which rate a place receives SPEAD heaps over UDP without loss, and
// how much processor time of the host that takes.
//
// It follows table 1 of the KAT-7 paper, which compared a bare host, virtual machines and
// containers as the machine that captures what the correlator sends. Heaps received are compared
// with heaps sent; the receiver listens before the first packet; and a trial in which the sender
// did not reach 99 % of the rate asked for counts for nothing.
//
// Rates are in bits of SPEAD packets, that is without the headers of UDP, IP and Ethernet, as
// spead2's programs count them.
package capture

import (
	"context"
	"sync"
	"time"

	"orrery/internal/lab/place"
	"orrery/internal/lab/test"
	"orrery/internal/problem"
)

// The figures.
const (
	lossless = "lossless rate"
	byPaper  = "lossless rate by the paper"
	hostCPU  = "host cpu"
	perGbit  = "cpu per Gb/s"
)

// capture is the test.
type capture struct {
	options

	last sync.Map // lossless rate of the trial before, by setting and copy: a search begins there
	fits common
}

// A common buffer is the largest buffer that all places can have, as far as they were checked: the
// smallest of those that they got. The bare host may force a larger one than net.core.rmem_max, and
// a node may not. Then it would be the sysctl that is measured.
type common struct {
	mutex sync.Mutex
	bytes int
}

// got takes down what a place got; 0: it is not known.
func (r *common) got(bytes int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if bytes > 0 && (r.bytes == 0 || bytes < r.bytes) {
		r.bytes = bytes
	}
}

// within returns options that ask for no more than that.
func (r *common) within(o options) options {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.bytes > 0 {
		o.Buffer = min(o.Buffer, test.Bytes(r.bytes))
	}
	return o
}

// New makes the test from its options.
func New(decode func(options any) error) (test.Test, error) {
	c := &capture{options: defaults()}
	if err := test.Read(decode, &c.options, c.check); err != nil {
		return nil, err
	}
	return c, nil
}

// Needs returns the far end, and Orrery itself unless spead2's programs are used.
func (c *capture) Needs() test.Needs {
	n := test.Needs{Far: true}
	if c.Program == ours {
		n.Tools = []string{place.Orrery}
	}
	return n
}

// Figures returns the rows.
func (c *capture) Figures() []test.Figure {
	all := []test.Figure{{Name: lossless, Unit: "bit/s", Better: test.More, Aggregate: test.Sum}}
	if c.Paper {
		all = append(all, test.Figure{Name: byPaper, Unit: "bit/s", Better: test.More, Aggregate: test.Sum})
	}
	return append(all,
		// Of all processors of the host, while heaps come at the lossless rate, less what they did before.
		test.Figure{Name: hostCPU, Unit: "1", Better: test.Less, Aggregate: test.Mean},
		// Seconds of a processor for a gigabit: processors that are busy for each Gb/s.
		test.Figure{Name: perGbit, Unit: "s/Gbit", Better: test.Less, Aggregate: test.Mean})
}

// Time is that of about thirty trials, and of the paper's dozen.
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

// Check sends a little to every place that is to receive much.
func (c *capture) Check(ctx context.Context, t *test.Trial) error {
	if t.Far == nil || !t.Near.Address.IsValid() {
		return problem.New(problem.Unable, "there is no far end to send from").At(t.Near.Name)
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
	defer func() { c.fits.got(p.buffer()) }()
	// Three times: what is lost to a full buffer at this rate is not lost always, what a firewall holds back is.
	for range 3 {
		sent, got, err := p.trial(ctx, 50e6, 100*time.Millisecond)
		if err != nil {
			return err
		}
		if got.Heaps > 0 {
			return nil
		}
		if got.Packets > 0 {
			return problem.New(problem.Failed, "of %d heaps sent none came whole: %d of %d packets came", sent.Heaps,
				got.Packets, sent.Packets).
				At(t.Near.Name).Try("are packets of %d bytes too large for the way? Set packet = 1472", c.Packet)
		}
	}
	return problem.New(problem.Failed, "nothing that the far end sends to %v comes", c.endpoint(t)).At(t.Near.Name).
		Try("does a firewall hold back UDP port %d?", c.endpoint(t).Port())
}
