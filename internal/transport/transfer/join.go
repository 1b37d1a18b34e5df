package transfer

import (
	"context"
	"io"
	"net"
	"sync"
)

// Splice copies bytes between two connections in both directions until both have ended, or ctx ends.
// It closes both connections.
func Splice(ctx context.Context, a, b net.Conn) {
	over := context.AfterFunc(ctx, func() { _, _ = a.Close(), b.Close() })
	defer over()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			to, from := way[0], way[1]
			_, err := io.Copy(to, from)
			if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil && half.CloseWrite() == nil {
				return
			}
			_, _ = to.Close(), from.Close()
		})
	}
	both.Wait()
	_, _ = a.Close(), b.Close()
}
