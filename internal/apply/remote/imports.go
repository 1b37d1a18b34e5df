package remote

import (
	"context"
	"io"
)

// Receive sends the remote host a file from which a layer will be built.
func (f layerHost) Receive(ctx context.Context, digest string, rw io.ReadWriter) error {
	return receiveMethod.callStream(ctx, f.remoteHost, digest, rw)
}

var receiveMethod = method[string, none]{
	name: "receive", callOptions: callOptions{long: true, abandoned: true, displayed: true},
	answer: func(ctx context.Context, c *serverCall, digest string) (none, error) {
		return none{}, c.host().Layers.Receive(ctx, digest, c.stream())
	},
}
