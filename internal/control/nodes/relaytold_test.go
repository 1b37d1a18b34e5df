package nodes

import (
	"context"
	"errors"
	"net"
	"testing"
)

// TestRelayTold: the result of each dial is reported. A dial that the caller interrupted is not
// reported as an error.
func TestRelayTold(t *testing.T) {
	refused := errors.New("nothing listens there")
	for what, c := range map[string]struct {
		interrupted bool
		want        error
	}{"there is no way": {false, refused}, "the caller interrupts it": {true, nil}} {
		ctx, end := context.WithCancel(t.Context())
		l, told, over := listener(t), make(chan error, 1), make(chan struct{})
		go func() {
			Forward(ctx, l, func(ctx context.Context) (net.Conn, error) {
				if c.interrupted {
					end()
					<-ctx.Done()
				}
				return nil, refused
			}, func(err error) { told <- err })
			close(over)
		}()
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if err := <-told; !errors.Is(err, c.want) {
			t.Errorf("%s: told is %v", what, err)
		}
		if n, err := conn.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s: the connection goes on, with %d bytes", what, n)
		}
		_ = conn.Close()
		end()
		<-over
	}
}
