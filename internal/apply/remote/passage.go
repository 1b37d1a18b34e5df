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

// transferMessage is a message that is sent while hosts receive something from one another.
type transferMessage struct {
	Meet  *endpointMessage `json:"meet,omitempty"`
	Doubt string           `json:"doubt,omitempty"`
	Moved int64            `json:"moved,omitempty"`
}

// An endpointMessage is a message of a helper about its end of a connection. The end is open for a peer, or
// the helper asks to meet the peer, or it asks for a relay because the two cannot connect.
type endpointMessage struct {
	Peer  string                `json:"peer,omitempty"`
	Card  transfer.EndpointInfo `json:"card"`
	Relay bool                  `json:"relay,omitempty"`
}

// An endpointReply is the answer to a meeting.
type endpointReply struct {
	Card  transfer.EndpointInfo `json:"card"`
	Fault *wireError            `json:"fault,omitempty"`
}

// ContentInfo returns the content digest of a layer on the remote host.
func (f layerHost) ContentInfo(ctx context.Context, layer string) (w image.ContentInfo, err error) {
	return layerContentMethod.call(ctx, f.remoteHost, layer)
}

var layerContentMethod = method[string, image.ContentInfo]{
	name: "layer", callOptions: callOptions{long: true, abandoned: true},
	answer: func(ctx context.Context, c *serverCall, layer string) (image.ContentInfo, error) {
		return c.host().Layers.ContentInfo(ctx, layer)
	},
}

// Send makes the remote host send something to another host.
func (f transferHost) Send(ctx context.Context, e apply.Transfer, at apply.ListenAddrs,
	meet func(transfer.EndpointInfo) (transfer.EndpointInfo, error), say func(string)) (sum string, err error) {
	return sendMethod.ask(ctx, f.Link, f.at, sendRequest{e, at}, func(t *rpc.Stream, w *response) error {
		if w.Meet == nil {
			say(w.Detail)
			return nil
		}
		var r endpointReply
		theirs, err := meet(w.Meet.Card)
		r.Card, r.Fault = theirs, toWireError(err)
		return t.Send(r)
	})
}

// A sendRequest is what a host must send, and where it listens.
type sendRequest struct {
	Errand apply.Transfer    `json:"errand"`
	At     apply.ListenAddrs `json:"at,omitzero"`
}

var sendMethod = method[sendRequest, string]{
	name: "give", callOptions: callOptions{long: true, displayed: true},
	answer: func(ctx context.Context, c *serverCall, g sendRequest) (string, error) {
		steers := &coordinator{with: c.ServerStream}
		return c.host().Transfers.Send(ctx, g.Errand, g.At, func(mine transfer.EndpointInfo) (transfer.EndpointInfo, error) {
			return steers.ask(endpointMessage{Card: mine})
		}, c.detail)
	},
}

// Receive makes the remote host receive something from others. It may meet several hosts
// concurrently, but asks the control host about one at a time.
func (f transferHost) Receive(ctx context.Context, e apply.Transfer, with apply.Coordinator, say func(string)) error {
	_, err := receiveTransferMethod.ask(ctx, f.Link, f.at, e, func(t *rpc.Stream, w *response) error {
		switch {
		case w.Doubt != "":
			with.Warn(w.Doubt)
		case w.Moved != 0:
			with.Moved(w.Moved)
		case w.Meet == nil:
			say(w.Detail)
		default:
			var r endpointReply
			var err error
			if w.Meet.Relay {
				err = with.Relay(ctx, w.Meet.Card)
			} else {
				r.Card, err = with.Introduce(ctx, w.Meet.Peer, w.Meet.Card)
			}
			r.Fault = toWireError(err)
			return t.Send(r)
		}
		return nil
	})
	return err
}

var receiveTransferMethod = method[apply.Transfer, none]{
	name: "take", callOptions: callOptions{long: true, displayed: true},
	answer: func(ctx context.Context, c *serverCall, e apply.Transfer) (none, error) {
		return none{}, c.host().Transfers.Receive(ctx, e, &coordinator{with: c.ServerStream}, c.detail)
	},
}

// Dial connects to an address from the remote host itself.
func (f transferHost) Dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	c, err := f.client.Runner(f.at.Host).Dial(ctx, "tcp", to.String())
	return c, f.lossOr(ctx, err)
}

// coordinator is the control host, as a helper sees it.
type coordinator struct {
	mutex sync.Mutex
	with  *rpc.ServerStream
}

func (c *coordinator) ask(m endpointMessage) (transfer.EndpointInfo, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err := c.with.Send(response{transferMessage: transferMessage{Meet: &m}}); err != nil {
		return transfer.EndpointInfo{}, err
	}
	var r endpointReply
	if err := c.with.Recv(&r); err != nil {
		return transfer.EndpointInfo{}, err
	}
	return r.Card, r.Fault.toError()
}

// Introduce makes another host open its end.
func (c *coordinator) Introduce(_ context.Context, peer string,
	mine transfer.EndpointInfo) (transfer.EndpointInfo, error) {
	return c.ask(endpointMessage{Peer: peer, Card: mine})
}

// Relay makes the control host connect the ends.
func (c *coordinator) Relay(_ context.Context, mine transfer.EndpointInfo) error {
	_, err := c.ask(endpointMessage{Card: mine, Relay: true})
	return err
}

// Moved reports to the control host how many more bytes have arrived.
func (c *coordinator) Moved(bytes int64) {
	_ = c.with.Send(response{transferMessage: transferMessage{Moved: bytes}})
}

// Warn reports to the control host that a peer sent something wrong.
func (c *coordinator) Warn(text string) {
	_ = c.with.Send(response{transferMessage: transferMessage{Doubt: text}})
}
