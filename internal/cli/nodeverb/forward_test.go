package nodeverb

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"orrery/internal/cli/verb"
	"orrery/internal/control/nodes"
	"orrery/internal/problem"
)

// TestRelayComplainsOnce: an error is reported when a client connects, only once, and does not end
// the relay.
func TestRelayComplainsOnce(t *testing.T) {
	var out lockedBuffer
	call := &verb.Call{Output: verb.Output{Err: &out}}
	near, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	works := make(chan bool, 10)
	go nodes.Forward(t.Context(), near, func(context.Context) (net.Conn, error) {
		if !<-works {
			return nil, problem.New(problem.Failed, "nothing listens")
		}
		c, other := net.Pipe()
		other.Close()
		return c, nil
	}, errorPrinter(call.Err))
	for _, how := range []bool{false, false, true, false} {
		works <- how
		c, err := net.Dial("tcp", near.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(time.Minute))
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("somebody answered")
		}
		c.Close()
	}
	if got := strings.Count(out.String(), "orrery: nothing listens\n"); got != 2 {
		t.Errorf("said %d times instead of twice:\n%s", got, out.String())
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
