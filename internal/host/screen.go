package host

import (
	"context"
	"net"
)

// A Screen is the graphical screen of a place, with its keyboard and pointer.
type Screen interface {
	// Open connects to the screen. The connection speaks the protocol of VNC (RFB, RFC 6143).
	// Several clients may be connected, and type, at once.
	Open(ctx context.Context) (net.Conn, error)
	// Picture returns what is on the screen now, as a PNG.
	Picture(ctx context.Context) ([]byte, error)
}
