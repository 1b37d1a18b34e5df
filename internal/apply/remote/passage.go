package remote

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"

	"orrery/internal/apply"
	"orrery/internal/image"
	"orrery/internal/lane"
	"orrery/internal/wire"
)

// What talks are about that have to do with what hosts take from one another.
const (
	toWord    = "layer"
	toPassOut = "give"
	toPassIn  = "take"
)

// pass is what their questions have, and passed what is said on the way.
type (
	pass struct {
		Layer  string        `json:"layer,omitempty"`
		Errand *apply.Errand `json:"errand,omitempty"`
		At     *apply.Spot   `json:"at,omitempty"`
	}
	passed struct {
		Meet  *meeting `json:"meet,omitempty"`
		Doubt string   `json:"doubt,omitempty"`
		Moved int64    `json:"moved,omitempty"`
	}
)

// A meeting is what a helper says of its end of a lane: that it is open for one who comes, or that it is to meet another host, or that the two do not reach one another.
type meeting struct {
	Peer  string    `json:"peer,omitempty"`
	Card  lane.Card `json:"card"`
	Relay bool      `json:"relay,omitempty"`
}

// A reply is the answer to it.
type reply struct {
	Card  lane.Card `json:"card"`
	Fault *fault    `json:"fault,omitempty"`
}

// Word says what is in a layer over there.
func (f *far) Word(ctx context.Context, layer string) (w image.Word, err error) {
	q := f.q()
	q.Layer = layer
	err = f.ask(ctx, toWord, q, nil, &w)
	return w, err
}

// Give does what a host that gives does.
func (f *far) Give(ctx context.Context, e apply.Errand, at apply.Spot, meet func(lane.Card) (lane.Card, error), say func(string)) (sum string, err error) {
	q := f.q()
	q.Errand, q.At = &e, &at
	err = f.ask(ctx, toPassOut, q, func(t *wire.Talk, w *word) error {
		if w.Meet == nil {
			say(w.Detail)
			return nil
		}
		var r reply
		theirs, err := meet(w.Meet.Card)
		r.Card, r.Fault = theirs, faultOf(err)
		return t.Say(r)
	}, &sum)
	return sum, err
}

// Take does what a host that takes does. It may meet several others at the same time, and asks one after the other.
func (f *far) Take(ctx context.Context, e apply.Errand, with apply.Meeting, say func(string)) error {
	q := f.q()
	q.Errand = &e
	return f.ask(ctx, toPassIn, q, func(t *wire.Talk, w *word) error {
		switch {
		case w.Doubt != "":
			with.Doubt(w.Doubt)
		case w.Moved != 0:
			with.Moved(w.Moved)
		case w.Meet == nil:
			say(w.Detail)
		default:
			var r reply
			var err error
			if w.Meet.Relay {
				err = with.Relay(ctx, w.Meet.Card)
			} else {
				r.Card, err = with.Meet(ctx, w.Meet.Peer, w.Meet.Card)
			}
			r.Fault = faultOf(err)
			return t.Say(r)
		}
		return nil
	}, nil)
}

// Dial connects on the host itself.
func (f *far) Dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	c, err := f.client.Runner(f.at.Host).Dial(ctx, "tcp", to.String())
	return c, f.unlessLost(ctx, err)
}

// pass does what is about layers and lanes.
func (on *lent) pass(ctx context.Context, about string, q *question, with *wire.Caller) (any, error) {
	if about == toWord {
		return on.Word(ctx, q.Layer)
	}
	if q.Errand == nil {
		return nil, errors.New("no errand is said")
	}
	steers, say := &caller{with: with}, func(text string) { _ = with.Say(word{Detail: text}) }
	if about == toPassIn {
		return nil, on.Take(ctx, *q.Errand, steers, say)
	}
	if q.At == nil {
		q.At = &apply.Spot{}
	}
	return on.Give(ctx, *q.Errand, *q.At, func(mine lane.Card) (lane.Card, error) { return steers.ask(meeting{Card: mine}) }, say)
}

// caller is whoever steers, as a helper sees him.
type caller struct {
	mutex sync.Mutex
	with  *wire.Caller
}

func (c *caller) ask(m meeting) (lane.Card, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err := c.with.Say(word{passed: passed{Meet: &m}}); err != nil {
		return lane.Card{}, err
	}
	var r reply
	if err := c.with.Hear(&r); err != nil {
		return lane.Card{}, err
	}
	return r.Card, r.Fault.err()
}

// Meet lets another host open its end.
func (c *caller) Meet(_ context.Context, peer string, mine lane.Card) (lane.Card, error) {
	return c.ask(meeting{Peer: peer, Card: mine})
}

// Relay lets whoever steers connect the ends.
func (c *caller) Relay(_ context.Context, mine lane.Card) error {
	_, err := c.ask(meeting{Card: mine, Relay: true})
	return err
}

// Moved tells him how many bytes more have come.
func (c *caller) Moved(bytes int64) { _ = c.with.Say(word{passed: passed{Moved: bytes}}) }

// Doubt tells him of something.
func (c *caller) Doubt(text string) { _ = c.with.Say(word{passed: passed{Doubt: text}}) }
