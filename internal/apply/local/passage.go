package local

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"

	"orrery/internal/apply"
	"orrery/internal/image"
	"orrery/internal/image/pieces"
	"orrery/internal/lane"
)

// Word says what is in a layer in the store.
func (p *Place) Word(_ context.Context, layer string) (image.Word, error) {
	return p.Ground.Layers.Word(layer)
}

// Give opens an end of a lane, waits for the host that takes, and gives it what it asks for.
func (w *Worker) Give(ctx context.Context, e apply.Errand, at apply.Spot, meet func(lane.Card) (lane.Card, error)) error {
	own := at.Own
	if !own.IsValid() {
		own = lane.Toward(at.Toward)
	}
	end, err := lane.Open(own)
	if err != nil {
		return err
	}
	defer end.Close()
	theirs, err := meet(end.Card())
	if err != nil {
		return err
	}
	c, err := end.Accept(ctx, theirs)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // all was given, or nobody wants it
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	return w.give(ctx, e, c)
}

func (w *Worker) give(ctx context.Context, e apply.Errand, c io.ReadWriter) error {
	if e.Layer == nil || e.Layer.Layer == nil {
		return errNoErrand
	}
	return w.Ground.Layers.Give(ctx, e.Layer.Layer.Digest, c)
}

// Take takes something from other hosts.
func (w *Worker) Take(ctx context.Context, e apply.Errand, with apply.Meeting, say func(string)) error {
	if e.Layer == nil || e.Layer.Layer == nil {
		return errNoErrand
	}
	from := make([]pieces.Source, len(e.Layer.From))
	for i, g := range e.Layer.From {
		from[i] = pieces.Source{Name: g.Host, Reserve: g.Reserve, Open: func(ctx context.Context) (net.Conn, error) { return apply.Along(ctx, with, g.Host) }}
	}
	return w.Ground.Layers.Take(ctx, e.Layer.Layer, e.Layer.Content, from, say, with.Doubt)
}

// errNoErrand is of an errand of a kind that this program does not know.
var errNoErrand = errors.New("it is not said what is taken; install the same orrery on all hosts")

// Dial connects on this machine.
func (w *Worker) Dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", to.String())
}
