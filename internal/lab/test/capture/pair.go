package capture

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"time"

	"orrery/internal/lab/place"
	"orrery/internal/lab/spead"
	"orrery/internal/lab/test"
	"orrery/internal/lab/test/net/serve"
)

// A pair is a sender at the far end and a receiver at the near end.
type pair interface {
	// trial sends at the given rate, or as fast as possible for +Inf, while the receiver listens.
	trial(ctx context.Context, rate float64, length time.Duration) (spead.Sent, spead.Received, error)
	// buffer returns the size that each socket of the receiver obtained, in bytes, or 0 if unknown.
	buffer() int
	close()
}

// open starts the programs that run for several trials.
func (c *capture) open(ctx context.Context, t *test.Trial) (pair, error) {
	o := c.fits.limit(c.options)
	if c.Program == spead2 {
		return &spead2Tools{options: o, near: t.Near, far: t.Far, at: c.endpoint(t)}, nil
	}
	return newOrreryTools(ctx, o, t.Near, t.Far, c.endpoint(t))
}

// endpoint returns the first address on which the receiver of a copy listens.
func (c *capture) endpoint(t *test.Trial) netip.AddrPort {
	return netip.AddrPortFrom(t.Near.Address, uint16(c.Port+t.Copy*c.Sockets))
}

// orreryTools runs Orrery's own programs. They stay running between trials, so that a trial takes no
// extra time for their start.
type orreryTools struct {
	receiver, sender *serve.Dialog
	listening        spead.Listening
}

// answerTimeout limits how long a program may take for an immediate answer.
const answerTimeout = 10 * time.Second

func newOrreryTools(ctx context.Context, o options, near, far *place.Place, at netip.AddrPort) (p *orreryTools,
	err error) {
	p = &orreryTools{}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	common := []string{fmt.Sprintf("--sockets=%d", o.Sockets), fmt.Sprintf("--packet=%d", o.Packet),
		fmt.Sprintf("--heap=%d", o.Heap), at.String()}
	p.receiver, err = serve.StartDialog(ctx, near,
		near.Command(place.Orrery, append([]string{"spead", "receive", "--session", fmt.Sprintf("--buffer=%d", o.Buffer)},
			common...)...))
	if err != nil {
		return p, err
	}
	p.sender, err = serve.StartDialog(ctx, far, far.Command(place.Orrery,
		append([]string{"spead", "send", "--session", fmt.Sprintf("--gso=%t", o.GSO)}, common...)...))
	if err != nil {
		return p, err
	}
	return p, p.receiver.ReadJSON(ctx, answerTimeout, &p.listening)
}

func (p *orreryTools) buffer() int { return p.listening.Buffer }

func (p *orreryTools) close() {
	for _, one := range []*serve.Dialog{p.sender, p.receiver} {
		if one != nil {
			one.Close()
		}
	}
}

func (p *orreryTools) trial(ctx context.Context, rate float64, length time.Duration) (sent spead.Sent,
	got spead.Received,
	err error) {
	if math.IsInf(rate, 1) {
		rate = 0
	}
	order, err := json.Marshal(spead.Order{Rate: rate, Seconds: length.Seconds()})
	if err != nil {
		return sent, got, err
	}
	var ready spead.Ready
	for _, step := range []func() error{
		func() error { return p.receiver.Send([]byte(spead.Begin)) },
		func() error { return p.receiver.ReadJSON(ctx, answerTimeout, &ready) },
		func() error { return p.sender.Send(order) },
		func() error { return p.sender.ReadJSON(ctx, 10*length+answerTimeout, &sent) },
		func() error { return p.receiver.Send([]byte(spead.End)) },
		func() error { return p.receiver.ReadJSON(ctx, answerTimeout, &got) },
	} {
		if err := step(); err != nil {
			return sent, got, err
		}
	}
	return sent, got, nil
}
