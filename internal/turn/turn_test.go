package turn

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// limit is how long something may take, on a busy machine, that takes no time.
const limit = time.Minute

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// served returns the near end of a connection, at whose far end turns are done.
func served(t *testing.T, do func(io.ReadWriteCloser) error) (near net.Conn, ended chan error) {
	near, far := net.Pipe()
	ended = make(chan error, 1)
	go func() { ended <- Serve(far, do) }()
	t.Cleanup(func() { _ = near.Close() })
	return near, ended
}

func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// echo sends back what comes.
func echo(c io.ReadWriteCloser) error {
	_, err := io.Copy(c, c)
	return err
}

// TestTurns: turns follow one another on one connection, with signs of life in between, and none sees anything of another.
func TestTurns(t *testing.T) {
	near, ended := served(t, echo)
	for _, text := range []string{"first", strings.Repeat("second", 50_000), ""} {
		_, err := near.Write([]byte{Pulse})
		must(t, err)
		answer := make([]byte, 1)
		_, err = near.Read(answer)
		must(t, err)
		if answer[0] != Pulse {
			t.Fatalf("the sign of life is %q", answer)
		}
		now, err := Begin(near)
		must(t, err)
		var got bytes.Buffer
		read := make(chan error, 1)
		go func() {
			_, err := io.Copy(&got, now)
			read <- err
		}()
		_, err = io.WriteString(now, text)
		must(t, err)
		must(t, now.End(limited(t)))
		must(t, <-read)
		if got.String() != text {
			t.Errorf("%d bytes came back of %d", got.Len(), len(text))
		}
		if n, err := now.Write([]byte("late")); n != 4 || err != nil {
			t.Errorf("what comes too late: %d, %v", n, err)
		}
		must(t, now.Close())
	}
	must(t, near.Close())
	must(t, <-ended)
}

// TestEnd: the end of a turn waits for what was under way, and a turn that does not end does not leave the connection to others.
func TestEnd(t *testing.T) {
	goOn := make(chan struct{})
	near, ended := served(t, func(c io.ReadWriteCloser) error {
		_, err := io.Copy(io.Discard, c)
		<-goOn
		return err
	})
	now, err := Begin(near)
	must(t, err)
	go io.Copy(io.Discard, now) //nolint:errcheck // it ends with the connection
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := now.End(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("it has ended, although something is under way: %v", err)
	}
	must(t, now.Close())
	if _, err := near.Write([]byte{Pulse}); err == nil {
		t.Error("the connection is open")
	}
	close(goOn)
	if err := <-ended; err == nil {
		t.Error("the far end has not noticed")
	}
}

// TestKilled: the connection of who is killed in the middle of a turn ends that.
func TestKilled(t *testing.T) {
	heard := make(chan error, 1)
	near, ended := served(t, func(c io.ReadWriteCloser) error {
		_, err := io.ReadAll(c)
		heard <- err
		return err
	})
	_, err := near.Write([]byte{begin, data, 0, 9, 'h', 'a'})
	must(t, err)
	must(t, near.Close())
	<-heard
	<-ended
}

// TestNoise: what belongs to no turn ends the connection, at either end.
func TestNoise(t *testing.T) {
	for _, text := range []string{"x", "bx", "bd\x00\x00", "bd\xff\xff", "e", "d\x00\x01a"} {
		near, ended := served(t, echo)
		go near.Write([]byte(text)) //nolint:errcheck // it may be closed before
		if err := <-ended; err == nil {
			t.Errorf("%q is taken for a turn", text)
		}
	}
	for _, text := range []string{"x", "d\x00\x00", "b"} {
		near, far := net.Pipe()
		go func() {
			_, _ = far.Read(make([]byte, 1))
			_, _ = io.WriteString(far, text)
		}()
		now, err := Begin(near)
		must(t, err)
		if _, err := now.Read(make([]byte, 10)); !errors.Is(err, errFrame) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestMore: a far end that says more after its end has no connection that is kept.
func TestMore(t *testing.T) {
	near, far := net.Pipe()
	go io.Copy(io.Discard, far) //nolint:errcheck // it ends with the connection
	now, err := Begin(near)
	must(t, err)
	go io.Copy(io.Discard, now)     //nolint:errcheck // it ends with the connection
	go far.Write([]byte("eGET / ")) //nolint:errcheck // it is all taken
	if err := now.End(limited(t)); !errors.Is(err, errNoise) {
		t.Errorf("it is kept: %v", err)
	}
	must(t, now.Close())
	if _, err := near.Write([]byte{Pulse}); err == nil {
		t.Error("the connection is open")
	}
}

// TestSilence: a connection that nobody uses ends at the far end.
func TestSilence(t *testing.T) {
	before := Patience
	Patience = 20 * time.Millisecond
	defer func() { Patience = before }()
	_, ended := served(t, echo)
	select {
	case <-ended:
	case <-time.After(limit):
		t.Error("it is open")
	}
}
