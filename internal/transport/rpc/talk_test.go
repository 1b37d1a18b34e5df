package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// A talking place sends back what it receives.
type talking struct {
	host.Local
	gone chan error // why its callers have gone
}

func (p talking) ServeStream(_ context.Context, about string, with *ServerStream) error {
	for about == "echo" {
		var text string
		if err := with.Recv(&text); err != nil {
			p.gone <- err
			return problem.New(problem.Locked, "stopped").Because(err)
		}
		if text == "enough" {
			return nil
		}
		if err := with.Send(text); err != nil {
			return err
		}
	}
	return errors.New("about what?")
}

// Resolve returns places by their names.
func (p talking) Resolve(where json.RawMessage) (host.Runner, error) {
	var name string
	if err := json.Unmarshal(where, &name); err != nil || name != "n1" {
		return nil, problem.New(problem.Failed, "no such place").Try("look")
	}
	return host.Local{Name: name}, nil
}

func converse(t *testing.T, about string) (talking, *Client, *Stream) {
	t.Helper()
	p := talking{gone: make(chan error, 1)}
	c := begin(t, p)
	talk, err := c.OpenStream(within(t), about)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(talk.Close)
	return p, c, talk
}

// TestTalk: messages of any size go in both directions, and the end of a talk says how it went.
func TestTalk(t *testing.T) {
	_, _, talk := converse(t, "echo")
	for _, text := range []string{"", "a", strings.Repeat("large ", 1<<18)} {
		var back string
		if err := talk.Send(text); err != nil {
			t.Fatal(err)
		}
		if err := talk.Recv(&back); err != nil || back != text {
			t.Fatalf("%d bytes came back of %d: %v", len(back), len(text), err)
		}
	}
	if err := talk.Send("enough"); err != nil {
		t.Fatal(err)
	}
	if err := talk.Recv(new(string)); !errors.Is(err, io.EOF) {
		t.Errorf("it ended with %v", err)
	}
	_, _, talk = converse(t, "nothing")
	if err := talk.Recv(new(string)); err == nil || !strings.Contains(err.Error(), "about what?") {
		t.Errorf("it ended with %v", err)
	}
}

// TestTalkEnds: a caller that has called Stop still receives the end. The server does not wait for
// a caller that has gone.
func TestTalkEnds(t *testing.T) {
	p, _, talk := converse(t, "echo")
	talk.Stop()
	if err := talk.Recv(new(string)); err == nil || !strings.Contains(err.Error(), "its caller has stopped it") {
		t.Errorf("it ended with %v", err)
	}
	if err := <-p.gone; !errors.Is(err, errStreamStopped) {
		t.Error(err)
	}
	p, _, talk = converse(t, "echo")
	talk.Close()
	if err := <-p.gone; !errors.Is(err, errCallerGone) {
		t.Error(err)
	}
}

// TestAt: commands are run at places behind the server.
func TestAt(t *testing.T) {
	c := begin(t, talking{})
	in, err := c.RunnerAt("n1", "n1")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := in.Run(within(t), host.Command{Args: []string{"echo", "hello"}, Stdout: &out}); err != nil ||
		out.String() != "hello\n" {
		t.Errorf("%q, %v", &out, err)
	}
	if in, err = c.RunnerAt("n2", "n2"); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"run": in.Run(within(t), host.Command{Args: []string{"true"}}), "put": in.Put(within(t), host.File{Path: "/x"}),
	} {
		if err == nil || !strings.Contains(err.Error(), "no such place") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := in.Dial(within(t), "tcp", "127.0.0.1:1"); err == nil || !strings.Contains(err.Error(), "no such place") {
		t.Errorf("dial: %v", err)
	}
	if in, err = begin(t, host.Local{}).RunnerAt("n1", "n1"); err != nil {
		t.Fatal(err)
	}
	if err := in.Run(within(t), host.Command{Args: []string{"true"}}); !problem.Is(err, problem.Unable) {
		t.Errorf("a place without others: %v", err)
	}
}

// TestDemand: a client gives up a server that stalls without closing the connection, and running
// calls get that error. It does not give up a server that answers.
//
// Promise (Other hosts): A stalled connection is closed, and its callers are told why. With
// test.TestFleet.
func TestDemand(t *testing.T) {
	_, c, _ := converse(t, "echo")
	c.SetKeepAlive(time.Millisecond, limit)
	for range 20 {
		if err := c.Ping(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	near, far := pair(t)
	stalls := make(chan struct{})
	stalling := &stalling{Conn: far, at: stalls}
	go Serve(context.Background(), stalling, talking{gone: make(chan error, 1)}) //nolint:errcheck // it stalls
	c, err := NewClient(within(t), near)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it has ended
	talk, err := c.OpenStream(within(t), "echo")
	if err != nil {
		t.Fatal(err)
	}
	close(stalls)
	c.SetKeepAlive(10*time.Millisecond, 200*time.Millisecond)
	if err := talk.Recv(new(string)); err == nil ||
		!strings.Contains(err.Error(), "nothing was received from it for 200ms") {
		t.Errorf("it ended with %v", err)
	}
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), "nothing was received") {
		t.Errorf("the session ended because of %v", err)
	}
}

// A stalling connection reads nothing from some time on, and stays open.
type stalling struct {
	net.Conn
	at chan struct{}
}

func (s *stalling) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	select {
	case <-s.at:
		select {}
	default:
	}
	return n, err
}
