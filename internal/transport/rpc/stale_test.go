package rpc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"orrery/internal/host"
	"orrery/internal/transport/frame"
)

// kept is the host's connection to a serial port. It stays open when a client closes its end, and
// keeps what the client has sent.
type kept struct{ net.Conn }

// Close does nothing. kept has no SetDeadline, so ending a session closes it, as with once.
func (kept) Close() error { return nil }

// TestKilledInTheMiddle: a client is killed in the middle of a record. The next one comes so soon
// that the machine does not see that the first has gone. The calls of the first end, and nothing
// that the second sends is taken for a part of them.
//
// Promise (What others print and answer): If a client of an agent is killed, its calls end, and a
// file sent in part never counts as complete. With transport/rpc.TestPutInterrupted,
// transport/rpc.TestClientGoes, guest/agent.TestClientGoes, guest/agent.TestClients.
func TestKilledInTheMiddle(t *testing.T) {
	for _, missing := range []int{1, markBytes, markBytes + 1, 1000, 13000} {
		// bytes missing at the end of the last record
		near, far := pair(t)
		place := &puts{}
		go Serve(context.Background(), far, place) //nolint:errcheck // it ends with the connection
		from := newReader(near)
		session, err := sendGreeting(near, from)
		if err != nil {
			t.Fatal(err)
		}
		// Only a part of a file is sent.
		var sent bytes.Buffer
		r := &records{conn: struct {
			io.Reader
			io.Writer
			io.Closer
		}{near, &sent, near}, from: from, mark: session}
		stream := func(flags byte, body []byte) []byte {
			return append([]byte{0, typeData, 0, flags, 0, 0, 0, 1, 0, 0, byte(len(body) >> 8), byte(len(body))}, body...)
		}
		var q bytes.Buffer
		const size = 30000
		if err := frame.WriteJSON(&q, kindRequest,
			request{Verb: verbPut, Files: []file{{Path: "/x", Size: size}}}); err != nil {
			t.Fatal(err)
		}
		_, _ = r.Write(stream(flagSYN, q.Bytes()))
		_, _ = r.Write(stream(0, frame.Append(nil, kindStdout, make([]byte, size))))
		begun := sent.Bytes()
		if _, err := near.Write(begun[:len(begun)-missing]); err != nil {
			t.Fatal(err)
		}
		c, err := NewClient(within(t), kept{near})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Runner("node").Run(within(t), host.Command{Args: []string{"true"}}); err != nil {
			t.Error(err)
		}
		if place.called {
			t.Error("a file that did not come whole is put")
		}
		near.Close()
	}
}

// TestFollowed: a client takes another's place without notice. The commands of the first end, and
// the second is served.
func TestFollowed(t *testing.T) {
	near, far := pair(t)
	place := &noted{begun: make(chan struct{}), ended: make(chan error, 1)}
	go Serve(context.Background(), far, place) //nolint:errcheck // it ends with the connection
	first, err := NewClient(within(t), kept{near})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.call(within(t), request{Verb: verbRun, Args: []string{"wait"}}); err != nil {
		t.Fatal(err)
	}
	<-place.begun
	// The first client's reader would receive what is meant for the next. A killed process has no
	// reader.
	second := make(chan error, 1)
	go func() {
		_, err := near.Write(append(bytes.Repeat([]byte("\n"), maxRecordBytes+recordOverhead),
			greeting{version, wordHello, "fresh", ""}.line()...))
		second <- err
	}()
	if err := ended(t, place.ended); !errors.Is(err, errCallerGone) {
		t.Error(err)
	}
	if err := ended(t, second); err != nil {
		t.Error(err)
	}
	// If the first client were still alive, it would now get an error.
	if err := calls["ping"](within(t), first); err == nil || !strings.Contains(err.Error(), "has restarted") {
		t.Error(err)
	}
}

// TestBegunAnew: a machine that has begun a new session ends the call of a client that only waits.
func TestBegunAnew(t *testing.T) {
	near, far := pair(t)
	place := &noted{begun: make(chan struct{}), ended: make(chan error, 1)}
	go Serve(context.Background(), far, place) //nolint:errcheck // it ends with the connection
	c, err := NewClient(within(t), kept{near})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- c.Runner("node").Run(within(t), host.Command{Args: []string{"wait"}}) }()
	<-place.begun
	if _, err := near.Write(append(bytes.Repeat([]byte("\n"), maxRecordBytes+recordOverhead),
		greeting{version, wordHello, "fresh", ""}.line()...)); err != nil {
		t.Fatal(err)
	}
	if err := ended(t, done); err == nil || !strings.Contains(err.Error(), "has restarted") {
		t.Error(err)
	}
}

// TestRebooted: after a reboot the machine's agent does not know the session. The client gets an
// error, although it sends no end of a line.
func TestRebooted(t *testing.T) {
	near, far := pair(t)
	begun := make(chan error, 1)
	go func() {
		_, err := acceptGreeting(far, newReader(far))
		begun <- err
	}()
	c, err := NewClient(within(t), kept{near})
	if err != nil {
		t.Fatal(err)
	}
	if err := ended(t, begun); err != nil {
		t.Fatal(err)
	}
	go Serve(context.Background(), far, &puts{}) //nolint:errcheck // it ends with the connection
	if err := c.Ping(within(t)); err == nil || !strings.Contains(err.Error(), "has restarted") {
		t.Error(err)
	}
}

// TestStale: what earlier clients have left in either direction is skipped: parts of greetings and
// records, and greetings of clients that have given up.
func TestStale(t *testing.T) {
	for what, stale := range map[string]struct{ there, back string }{
		"nothing":         {"", ""},
		"words":           {"\x00\xff half a record, and orrery-wire in it", "words"},
		"half a greeting": {"\norrery-wire 1 hel", "\norrery-wire 1 welcome 0123"},
		"one who gave up": {string(greeting{version, wordHello, "old", ""}.line()),
			string(greeting{version, wordWelcome, "old", "0011223344556677"}.line())},
		"two who gave up": {strings.Repeat(string(greeting{version, wordHello, "old", ""}.line()), 2), ""},
		"of other versions": {string(greeting{"9", wordHello, "old", ""}.line()),
			string(greeting{"9", wordRefused, "old", ""}.line())},
		"a long line": {strings.Repeat("x", 100000), strings.Repeat("y", 100000)},
		"an odd one": {"\norrery-wire\norrery-wire 1\norrery-wire 1 hello\norrery-wire 1 nothing x\n",
			"\norrery-wire 1 over -\n"},
	} {
		t.Run(what, func(t *testing.T) {
			near, far := pair(t)
			for end, text := range map[net.Conn]string{near: stale.there, far: stale.back} {
				if _, err := end.Write([]byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			go Serve(context.Background(), far, host.Local{}) //nolint:errcheck // it ends with the connection
			c, err := NewClient(within(t), near)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Ping(within(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

// endless is a connection that does not report that a client has gone.
type endless struct{ net.Conn }

func (endless) NoHangup() bool { return true }

// TestUnheard: a client goes unnoticed. Its commands end when nothing has been received from it for
// long enough. A client that is silent because it has no call, or because its call takes long,
// stays connected.
func TestUnheard(t *testing.T) {
	near, far := pair(t)
	place := &noted{begun: make(chan struct{}), ended: make(chan error, 1)}
	go Serve(context.Background(), endless{far}, place) //nolint:errcheck // it ends with the connection
	gone, err := sendGreeting(near, newReader(near))
	if err != nil {
		t.Fatal(err)
	}
	r := &records{conn: near, mark: gone}
	var q bytes.Buffer
	if err := frame.WriteJSON(&q, kindRequest, request{Verb: verbRun, Args: []string{"wait"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Write(append([]byte{0, typeData, 0, flagSYN, 0, 0, 0, 1, 0, 0, 0, byte(q.Len())},
		q.Bytes()...)); err != nil {
		t.Fatal(err)
	}
	<-place.begun
	if err := ended(t, place.ended); !errors.Is(err, errCallerGone) {
		t.Error(err)
	}

	near, far = pair(t)
	place = &noted{begun: make(chan struct{}), ended: make(chan error, 1)}
	go Serve(context.Background(), endless{far}, place) //nolint:errcheck // it ends with the connection
	c, err := NewClient(within(t), near)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	time.Sleep(3 * silentIntervals * pingInterval)
	call, err := c.call(within(t), request{Verb: verbRun, Args: []string{"wait"}})
	if err != nil {
		t.Fatal(err)
	}
	defer call.close()
	<-place.begun
	select {
	case err := <-place.ended:
		t.Errorf("a client who waits is taken to have gone: %v", err)
	case <-time.After(3 * silentIntervals * pingInterval):
	}
}
