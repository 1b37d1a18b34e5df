package remote_test

import (
	"context"
	"io"
	"net"
	"testing"

	"orrery/internal/apply/remote"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/turn"
)

// TestTurns: on a connection that several runs have, one after the other, nothing of one is left for the next: no lock and nothing under way, whether it ended in peace or was killed.
func TestTurns(t *testing.T) {
	p := newPair(t)
	near, far := net.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- turn.Serve(far, func(c io.ReadWriteCloser) error {
			return remote.Serve(context.Background(), c, p.machine, remote.Greeting{Version: "1"})
		})
	}()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	enter := func() (*turn.Turn, *remote.Link) {
		now, err := turn.Begin(near)
		must(t, err)
		l, err := remote.Open(ctx, "sv2", now, "1", func(err error) error { return err })
		must(t, err)
		return now, l
	}
	for _, who := range []string{"ada", "grace"} {
		now, l := enter()
		_, err := l.Host("s", p.keyring()).Runs.Lock(ctx, host.Holder{Who: who}) // and does not let go
		must(t, err)
		if _, err := p.far.Runs.Lock(ctx, host.Holder{Who: "alan"}); !problem.Is(err, problem.Locked) {
			t.Errorf("it is not held: %v", err)
		}
		parted := false
		l.Parting(func() {
			parted = true
			must(t, now.End(ctx))
		})
		l.Close()
		if !parted {
			t.Error("the link does not say when it is closed")
		}
		letGo, err := p.far.Runs.Lock(ctx, host.Holder{Who: "alan"})
		must(t, err)
		letGo()
	}
	_, l := enter()
	_, err := l.Host("s", p.keyring()).Runs.Lock(ctx, host.Holder{Who: "ada"})
	must(t, err)
	must(t, near.Close()) // as the kernel does
	<-ended
	letGo, err := p.far.Runs.Lock(ctx, host.Holder{Who: "alan"})
	must(t, err)
	letGo()
	if _, err := l.Inspect(ctx); err == nil {
		t.Error("somebody answers on a connection that is closed")
	}
	l.Parting(func() { t.Error("a connection that has ended is given to somebody") })
	l.Close()
}
