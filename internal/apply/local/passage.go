package local

import (
	"context"
	"errors"
	"net"
	"net/netip"

	"orrery/internal/apply"
	"orrery/internal/image"
	"orrery/internal/plan"
	"orrery/internal/transport/transfer"
	"orrery/internal/treesync/chunks"
)

// ContentInfo returns the content digest of a layer in the store.
func (h layerHost) ContentInfo(_ context.Context, layer string) (image.ContentInfo, error) {
	return h.Backends.Layers.ContentInfo(layer)
}

// Send opens an end of a connection, waits for the receiving host, and sends what it asks for.
func (h transferHost) Send(ctx context.Context, e apply.Transfer, at apply.ListenAddrs,
	meet func(transfer.EndpointInfo) (transfer.EndpointInfo, error), say func(string)) (string, error) {
	own := at.Own
	if !own.IsValid() {
		own = transfer.LocalAddrFor(at.Toward)
	}
	end, err := transfer.Listen(own)
	if err != nil {
		return "", err
	}
	defer end.Close()
	theirs, err := meet(end.Info())
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
		return "", h.Backends.Layers.Serve(ctx, e.Layer.Layer.Digest, c)
	case e.Node != nil:
		s, err := stepOf(e.Node)
		if err != nil {
			return "", err
		}
		sum, err := h.moves.send(ctx, s, transfer.WithoutDeadline(c), say)
		return sum, transfer.AsConnectionLost(err)
	case e.Copy != nil && e.Copy.From != nil:
		in, err := nodeHost{h.SiteState}.Runner(e.Copy.From)
		if err != nil {
			return "", err
		}
		return "", sendCopy(ctx, in, e.Copy, c)
	}
	return "", errUnknownTransfer
}

// Receive receives something from other hosts.
func (h transferHost) Receive(ctx context.Context, e apply.Transfer, with apply.Coordinator, say func(string)) error {
	switch {
	case e.Node != nil:
		return h.receiveNode(ctx, e.Node, with)
	case e.Copy != nil && e.Copy.To != nil:
		in, err := nodeHost{h.SiteState}.Runner(e.Copy.To)
		if err != nil {
			return err
		}
		return receiveCopy(ctx, in, e.Copy, with)
	}
	if e.Layer == nil || e.Layer.Layer == nil {
		return errUnknownTransfer
	}
	from := make([]chunks.Source, len(e.Layer.From))
	for i, g := range e.Layer.From {
		from[i] = chunks.Source{Name: g.Host, Fallback: g.Reserve,
			Open: func(ctx context.Context) (net.Conn, error) { return apply.DialPeer(ctx, with, g.Host) }}
	}
	return h.Backends.Layers.Download(ctx, e.Layer.Layer, e.Layer.Content, from, say, with.Warn)
}

// receiveNode receives the data of a node that moves to this host.
func (h transferHost) receiveNode(ctx context.Context, e *apply.NodeTransfer, with apply.Coordinator) error {
	s, err := stepOf(e)
	if err != nil {
		return err
	}
	if err := h.moves.checkAbsent(s); err != nil {
		return err
	}
	return apply.ReceiveFrom(ctx, with, s.Peer, func(c net.Conn) error { return h.moves.receiveData(s, c) })
}

// stepOf returns the step of a transfer.
func stepOf(e *apply.NodeTransfer) (*plan.Step, error) {
	s, err := plan.Decode(e.Step)
	if err == nil && s.Kind != plan.CopyNode && s.Kind != plan.SendNode {
		err = errUnknownTransfer
	}
	return s, err
}

// errUnknownTransfer is the error for a kind of transfer that this program does not know.
var errUnknownTransfer = errors.New("unknown kind of transfer; install the same orrery on all hosts")

// Dial connects to an address from this machine.
func (h transferHost) Dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", to.String())
}
