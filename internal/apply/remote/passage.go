package remote

import (
	"context"
	"net"
	"net/netip"
	"sync"

	"orrery/internal/apply"
	"orrery/internal/image"
	"orrery/internal/transport/rpc"
	"orrery/internal/transport/transfer"
)

// passed is a message that is sent while hosts receive something from one another.
type passed struct {
	Meet  *meeting `json:"meet,omitempty"`
	Doubt string   `json:"doubt,omitempty"`
	Moved int64    `json:"moved,omitempty"`
}

// A meeting is a message of a helper about its end of a connection. The end is open for a peer, or
// the helper asks to meet the peer, or it asks for a relay because the two cannot connect.
type meeting struct {
	Peer  string        `json:"peer,omitempty"`
	Card  transfer.Card `json:"card"`
	Relay bool          `json:"relay,omitempty"`
}

// A reply is the answer to a meeting.
type reply struct {
	Card  transfer.Card `json:"card"`
	Fault *fault        `json:"fault,omitempty"`
}

// Word returns the content digest of a layer on the remote host.
func (f layerHost) Word(ctx context.Context, layer string) (w image.Word, err error) {
	return layerMethod.call(ctx, f.far, layer)
}

var layerMethod = method[string, image.Word]{
	name: "layer", traits: traits{long: true, abandoned: true},
	answer: func(ctx context.Context, c *received, layer string) (image.Word, error) {
		return c.host().Layers.Word(ctx, layer)
	},
}

// Send makes the remote host send something to another host.
func (f transferHost) Send(ctx context.Context, e apply.Errand, at apply.Spot,
	meet func(transfer.Card) (transfer.Card, error), say func(string)) (sum string, err error) {
	return giveMethod.ask(ctx, f.Link, f.at, gift{e, at}, func(t *rpc.Talk, w *word) error {
		if w.Meet == nil {
			say(w.Detail)
			return nil
		}
		var r reply
		theirs, err := meet(w.Meet.Card)
		r.Card, r.Fault = theirs, faultOf(err)
		return t.Say(r)
	})
}

// A gift is what a host must send, and where it listens.
type gift struct {
	Errand apply.Errand `json:"errand"`
	At     apply.Spot   `json:"at,omitzero"`
}

var giveMethod = method[gift, string]{
	name: "give", traits: traits{long: true, displayed: true},
	answer: func(ctx context.Context, c *received, g gift) (string, error) {
		steers := &caller{with: c.Caller}
		return c.host().Transfers.Send(ctx, g.Errand, g.At, func(mine transfer.Card) (transfer.Card, error) {
			return steers.ask(meeting{Card: mine})
		}, c.detail)
	},
}

// Receive makes the remote host receive something from others. It may meet several hosts
// concurrently, but asks the control host about one at a time.
func (f transferHost) Receive(ctx context.Context, e apply.Errand, with apply.Meeting, say func(string)) error {
	_, err := takeMethod.ask(ctx, f.Link, f.at, e, func(t *rpc.Talk, w *word) error {
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
	})
	return err
}

var takeMethod = method[apply.Errand, none]{
	name: "take", traits: traits{long: true, displayed: true},
	answer: func(ctx context.Context, c *received, e apply.Errand) (none, error) {
		return none{}, c.host().Transfers.Receive(ctx, e, &caller{with: c.Caller}, c.detail)
	},
}

// Dial connects to an address from the remote host itself.
func (f transferHost) Dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	c, err := f.client.Runner(f.at.Host).Dial(ctx, "tcp", to.String())
	return c, f.unlessLost(ctx, err)
}

// caller is the control host, as a helper sees it.
type caller struct {
	mutex sync.Mutex
	with  *rpc.Caller
}

func (c *caller) ask(m meeting) (transfer.Card, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err := c.with.Say(word{passed: passed{Meet: &m}}); err != nil {
		return transfer.Card{}, err
	}
	var r reply
	if err := c.with.Hear(&r); err != nil {
		return transfer.Card{}, err
	}
	return r.Card, r.Fault.err()
}

// Meet makes another host open its end.
func (c *caller) Meet(_ context.Context, peer string, mine transfer.Card) (transfer.Card, error) {
	return c.ask(meeting{Peer: peer, Card: mine})
}

// Relay makes the control host connect the ends.
func (c *caller) Relay(_ context.Context, mine transfer.Card) error {
	_, err := c.ask(meeting{Card: mine, Relay: true})
	return err
}

// Moved reports to the control host how many more bytes have arrived.
func (c *caller) Moved(bytes int64) { _ = c.with.Say(word{passed: passed{Moved: bytes}}) }

// Doubt reports to the control host that a peer sent something wrong.
func (c *caller) Doubt(text string) { _ = c.with.Say(word{passed: passed{Doubt: text}}) }
