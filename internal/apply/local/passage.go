package local

import (
	"context"
	"errors"
	"net"
	"net/netip"

	"orrery/internal/apply"
	"orrery/internal/apply/copying"
	"orrery/internal/image"
	"orrery/internal/plan"
	"orrery/internal/transport/transfer"
	"orrery/internal/treesync/chunks"
)

// Word returns the content digest of a layer in the store.
func (h layerHost) Word(_ context.Context, layer string) (image.Word, error) {
	return h.Ground.Layers.Word(layer)
}

// Send opens an end of a connection, waits for the receiving host, and sends what it asks for.
func (h transferHost) Send(ctx context.Context, e apply.Errand, at apply.Spot,
	meet func(transfer.Card) (transfer.Card, error), say func(string)) (string, error) {
	own := at.Own
	if !own.IsValid() {
		own = transfer.Toward(at.Toward)
	}
	end, err := transfer.Open(own)
	if err != nil {
		return "", err
	}
	defer end.Close()
	theirs, err := meet(end.Card())
	if err != nil {
		return "", err
	}
	c, err := end.Accept(ctx, theirs)
	if err != nil {
		return "", err
	}
	defer c.Close() //nolint:errcheck // all was given, or nobody wants it
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	switch {
	case e.Layer != nil && e.Layer.Layer != nil:
		return "", h.Ground.Layers.Give(ctx, e.Layer.Layer.Digest, c)
	case e.Node != nil:
		s, err := moving(e.Node)
		if err != nil {
			return "", err
		}
		sum, err := h.moves.send(ctx, s, transfer.Unhurried(c), say)
		return sum, transfer.Cut(err)
	case e.Copy != nil && e.Copy.From != nil:
		in, err := nodeHost{h.Place}.Runner(e.Copy.From)
		if err != nil {
			return "", err
		}
		return "", copying.Give(ctx, in, e.Copy, c)
	}
	return "", errNoErrand
}

// Receive receives something from other hosts.
func (h transferHost) Receive(ctx context.Context, e apply.Errand, with apply.Meeting, say func(string)) error {
	switch {
	case e.Node != nil:
		return h.takeNode(ctx, e.Node, with)
	case e.Copy != nil && e.Copy.To != nil:
		in, err := nodeHost{h.Place}.Runner(e.Copy.To)
		if err != nil {
			return err
		}
		return copying.Take(ctx, in, e.Copy, with)
	}
	if e.Layer == nil || e.Layer.Layer == nil {
		return errNoErrand
	}
	from := make([]chunks.Source, len(e.Layer.From))
	for i, g := range e.Layer.From {
		from[i] = chunks.Source{Name: g.Host, Fallback: g.Reserve,
			Open: func(ctx context.Context) (net.Conn, error) { return apply.Along(ctx, with, g.Host) }}
	}
	return h.Ground.Layers.Take(ctx, e.Layer.Layer, e.Layer.Content, from, say, with.Doubt)
}

// takeNode receives the data of a node that moves to this host.
func (h transferHost) takeNode(ctx context.Context, e *apply.NodeErrand, with apply.Meeting) error {
	s, err := moving(e)
	if err != nil {
		return err
	}
	if err := h.moves.free(s); err != nil {
		return err
	}
	return apply.From(ctx, with, s.Peer, func(c net.Conn) error { return h.moves.take(s, c) })
}

// moving returns the step of an errand.
func moving(e *apply.NodeErrand) (*plan.Step, error) {
	s, err := plan.Decode(e.Step)
	if err == nil && s.Kind != plan.CopyNode && s.Kind != plan.SendNode {
		err = errNoErrand
	}
	return s, err
}

// errNoErrand is the error for a kind of errand that this program does not know.
var errNoErrand = errors.New("it is not said what is taken; install the same orrery on all hosts")

// Dial connects to an address from this machine.
func (h transferHost) Dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", to.String())
}
