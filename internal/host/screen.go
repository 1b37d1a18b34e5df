package host

import (
	"context"
	"net"
)

// A Screen is that of a place which shows more than lines, with a keyboard and a pointer.
type Screen interface {
	// Open connects to it: what comes along the line and goes along it is the protocol of VNC (RFB,
	// RFC 6143). Several may see it, and type, at once.
	Open(ctx context.Context) (net.Conn, error)
	// Picture returns what is on it now, as a PNG.
	Picture(ctx context.Context) ([]byte, error)
}
