package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/yamux"
	"pgregory.net/rapid"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/transport/frame"
	"orrery/test/need"
)

// impostor greets like a server and then sends whatever then writes.
func impostor(t testing.TB, then func(r *records)) *Client {
	t.Helper()
	near, far := pair(t)
	go func() {
		from := newReader(far)
		session, err := acceptGreeting(far, from)
		if err != nil {
			return
		}
		then(&records{conn: far, from: from, mark: session})
	}()
	c, err := NewClient(within(t), near)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// liar follows the protocol except in its answers.
func liar(t testing.TB, answer func(s *yamux.Stream)) *Client {
	t.Helper()
	return impostor(t, func(r *records) {
		s, err := yamux.Server(r, yamuxConfig())
		if err != nil {
			return
		}
		for {
			stream, err := s.AcceptStream()
			if err != nil {
				return
			}
			go func() {
				defer stream.Close()
				var q request
				if frame.ReadJSON(stream, kindRequest, maxRequestBytes, &q) == nil && q.Verb != verbInput {
					answer(stream)
				}
			}()
		}
	})
}

// calls has every call that waits for an answer.
var calls = map[string]func(ctx context.Context, c *Client) error{
	"ping":     func(ctx context.Context, c *Client) error { return c.Ping(ctx) },
	"await":    func(ctx context.Context, c *Client) error { return c.Await(ctx, "/x") },
	"join":     func(ctx context.Context, c *Client) error { return c.ConfigureNICs(ctx, nil) },
	"poweroff": func(ctx context.Context, c *Client) error { return c.PowerOff(ctx) },
	"forget":   func(ctx context.Context, c *Client) error { return c.Unmount(ctx, []string{"/x"}) },
	"find":     func(ctx context.Context, c *Client) error { return c.RefreshMounts(ctx, []string{"/x"}) },
	"unused":   func(ctx context.Context, c *Client) error { return c.CheckDisksUnused(ctx, []string{"x"}) },
	"stir":     func(ctx context.Context, c *Client) error { return c.WakeFileServer(ctx) },
	"run": func(ctx context.Context, c *Client) error {
		return c.Runner("node").Run(ctx, host.Command{Args: []string{"x"}, Stdout: io.Discard})
	},
	"run with input": func(ctx context.Context, c *Client) error {
		return c.Runner("node").Run(ctx, host.Command{Args: []string{"x"}, Stdin: &pattern{}})
	},
	"put": func(ctx context.Context, c *Client) error {
		return c.Runner("node").Put(ctx, host.File{Path: "/x", Content: make([]byte, 1<<20)})
	},
	"dial": func(ctx context.Context, c *Client) error {
		conn, err := c.Runner("node").Dial(ctx, "tcp", "127.0.0.1:1")
		if err == nil {
			_, err = conn.Read(make([]byte, 1))
			conn.Close()
		}
		return err
	},
}

// fails makes a call that cannot succeed and must end long before its timeout.
func fails(t *testing.T, name string, c *Client, want string) {
	t.Helper()
	err := calls[name](within(t), c)
	if err == nil || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v, want %q", name, err, want)
	}
}

// TestSilent: every call to a server that does not answer ends with its context.
//
// Promise (What others print and answer): An agent that is silent or disconnects delays no caller
// beyond the caller's timeout. With transport/rpc.TestHalfClosed.
func TestSilent(t *testing.T) {
	near, _ := pair(t)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := NewClient(ctx, near); err == nil || !errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), "no answer") {
		t.Error(err)
	}
	for what, c := range map[string]*Client{
		"takes all":     liar(t, func(s *yamux.Stream) { _, _ = io.Copy(io.Discard, s) }),
		"takes nothing": impostor(t, func(*records) { select {} }),
	} {
		for name, call := range calls {
			t.Run(what+"/"+name, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
				defer cancel()
				done := make(chan error, 1)
				go func() { done <- call(ctx, c) }()
				if err := ended(t, done); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		}
	}
}

// TestHalfClosed: every call fails if the server begins an answer and goes.
func TestHalfClosed(t *testing.T) {
	for what, end := range map[string]func(r *records){
		"closes":           func(r *records) { r.conn.Close() },
		"closes half":      func(r *records) { _ = r.conn.(interface{ CloseWrite() error }).CloseWrite() },
		"ends in a record": func(r *records) { _, _ = r.conn.Write(append(r.mark[:], 1, 0, 'x')); r.conn.Close() },
	} {
		for name := range calls {
			t.Run(what+"/"+name, func(t *testing.T) {
				t.Parallel()
				fails(t, name, impostor(t, end), "")
			})
		}
	}
	for name := range calls {
		t.Run("stream/"+name, func(t *testing.T) {
			t.Parallel()
			fails(t, name, liar(t, func(s *yamux.Stream) { _, _ = s.Write([]byte{kindAnswer, 0, 0, 0, 9, '{'}) }),
				"the other end does not answer")
		})
	}
}

// TestLiar: an invalid answer ends the session, with a clear problem.
func TestLiar(t *testing.T) {
	for what, bytes := range map[string][]byte{
		"long":     {kindAnswer, 0xff, 0xff, 0xff, 0xff},
		"too long": binary.BigEndian.AppendUint32([]byte{kindAnswer}, maxStatusBytes+1),
		"kind":     frame.Append(nil, '?', []byte("{}")),
		"question": frame.Append(nil, kindRequest, []byte("{}")),
		"json":     frame.Append(nil, kindAnswer, []byte("no")),
		"type":     frame.Append(nil, kindAnswer, []byte(`{"status":"x"}`)),
	} {
		for name := range calls {
			t.Run(what+"/"+name, func(t *testing.T) {
				t.Parallel()
				c := liar(t, func(s *yamux.Stream) { _, _ = s.Write(bytes); _, _ = io.Copy(io.Discard, s) })
				fails(t, name, c, "violated the protocol")
				select {
				case <-c.Done():
				case <-time.After(limit):
					t.Error("the session goes on")
				}
			})
		}
	}
}

// TestLies: a server can report that a command failed, and how, but nothing else. Its texts are
// limited.
func TestLies(t *testing.T) {
	long := strings.Repeat("x", 25000)
	c := liar(t, func(s *yamux.Stream) {
		_ = frame.WriteJSON(s, kindAnswer, map[string]any{"failed": true, "ran": true, "status": 1 << 40, "output": long,
			"why": "\x1b[2J" + "because"})
	})
	var e *host.RunError
	if err := c.Runner("node").Run(within(t), host.Command{Args: []string{"mine"}}); !errors.As(err, &e) ||
		e.Status != -1 || e.Place != "node" || e.Command[0] != "mine" || len(e.Output) > maxOutputBytes {
		t.Errorf("%#v", err)
	}
	c = liar(t, func(s *yamux.Stream) {
		_ = frame.WriteJSON(s, kindAnswer, answer{Failed: true, Why: long, Cure: long, Unable: true})
	})
	err := c.Runner("node").Run(within(t), host.Command{Args: []string{"mine"}})
	if !problem.Is(err, problem.Unable) || len(err.Error()) > 3*maxWordsBytes {
		t.Errorf("%T of %d bytes", err, len(err.Error()))
	}
	c = liar(t, func(s *yamux.Stream) {
		_ = frame.WriteJSON(s, kindAnswer, answer{Failed: true, InUse: true, Ran: true, Unable: true, Why: long})
	})
	var used *InUse
	if err := c.Unmount(within(t), []string{"/x"}); !errors.As(err, &used) || len(used.By) > 2*maxWordsBytes {
		t.Errorf("%T", err)
	}
}

// TestFlood: endless output goes to the caller's writer until that fails. It is not kept in memory.
func TestFlood(t *testing.T) {
	flood := func() func(*yamux.Stream) {
		var begun atomic.Bool
		return func(s *yamux.Stream) {
			if begun.Swap(true) { // on a busy machine, a request for a sign of life may come
				return
			}
			for f := frame.Append(nil, kindStdout, make([]byte, maxDataBytes)); ; {
				if _, err := s.Write(f); err != nil {
					return
				}
			}
		}
	}
	c := liar(t, flood())
	_, err := host.Output(within(t), c.Runner("node"), host.Command{Args: []string{"x"}}, 1<<20)
	if err == nil || !strings.Contains(err.Error(), "more than 1 MiB") {
		t.Error(err)
	}
	c.Close()
	c = liar(t, flood())
	before := allocated()
	var read int
	var took uint64
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cmd := host.Command{Args: []string{"x"}, Stdout: writer(func(p []byte) (int, error) {
		if read += len(p); read > 64<<20 && took == 0 {
			took = allocated() - before
			cancel()
		}
		return len(p), nil
	})}
	if err := c.Runner("node").Run(ctx, cmd); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	// The buffers of both ends, which are in this process, do not grow with what passes through
	// them.
	if took > 16<<20 {
		t.Errorf("%d MiB were allocated for 64 MiB", took>>20)
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// TestForward: a server may not open streams, ask for signs of life, or send more than the window
// allows. Each of these would take memory at the client, or demand an answer.
//
// Promise (What others print and answer): The agent of a virtual machine only answers what the host
// asks, in bounded memory. With transport/rpc.TestLiar, transport/rpc.TestLies,
// transport/rpc.TestFlood, transport/rpc.TestNoise, transport/rpc.TestRandomAnswers.
func TestForward(t *testing.T) {
	header := func(kind byte, flags uint16, stream, length uint32) []byte {
		b := binary.BigEndian.AppendUint16([]byte{0, kind}, flags)
		return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, stream), length)
	}
	for what, c := range map[string]struct {
		frame []byte
		want  string
	}{
		"a stream":            {header(1, flagSYN, 2, 0), errUnsolicited.Error()},
		"a stream, with data": {append(header(typeData, flagSYN, 2, 1), 'x'), errUnsolicited.Error()},
		"signs of life":       {header(typePing, flagSYN, 0, 7), errUnsolicited.Error()},
		"a sign of life":      {header(typePing, 2, 0, 7), errUnsolicited.Error()},
		"another version":     {[]byte{9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, errFrame.Error()},
		"another type":        {header(4, 0, 0, 0), errFrame.Error()},
		"too much":            {append(header(typeData, 0, 1, 1<<30), make([]byte, 1<<20)...), "window"},
	} {
		t.Run(what, func(t *testing.T) {
			cl := impostor(t, func(r *records) {
				q := make([]byte, 12)
				if _, err := io.ReadFull(r, q); err != nil { // a stream has been opened
					return
				}
				for range 1000 {
					if _, err := r.Write(c.frame); err != nil {
						return
					}
				}
			})
			fails(t, "ping", cl, c.want)
		})
	}
}

// TestNoise: a peer that sends much and no greeting is given up.
func TestNoise(t *testing.T) {
	near, far := pair(t)
	go func() {
		go io.Copy(io.Discard, far) //nolint:errcheck // it ends with the connection
		for noise := bytes.Repeat([]byte("noise"), 10000); ; {
			if _, err := far.Write(noise); err != nil {
				return
			}
		}
	}()
	before := allocated()
	_, err := NewClient(within(t), near)
	if !errors.Is(err, errNoise) ||
		!strings.Contains(err.Error(), "it is not Orrery's agent (orrery restart --hard NODE") {
		t.Error(err)
	}
	if took := allocated() - before; took > 4<<20 {
		t.Errorf("%d MiB were allocated", took>>20)
	}
}

// TestVersions: ends of different versions report that, and the server continues to serve.
func TestVersions(t *testing.T) {
	near, far := pair(t)
	go Serve(context.Background(), far, host.Local{}) //nolint:errcheck // it ends with the connection
	if _, err := near.Write(greeting{"7", wordHello, "abc", ""}.line()); err != nil {
		t.Fatal(err)
	}
	from := newReader(near)
	for {
		line, err := from.ReadSlice('\n')
		if err != nil {
			t.Fatal(err)
		}
		if g, ok := parseGreeting(line); ok {
			if g.word != wordRefused || g.nonce != "abc" || g.version != version {
				t.Errorf("%+v", g)
			}
			break
		}
	}
	if _, err := NewClient(within(t), near); err != nil {
		t.Error(err)
	}
	near, far = pair(t)
	go func() {
		from := newReader(far)
		for {
			line, err := from.ReadSlice('\n')
			if g, ok := parseGreeting(line); ok {
				_, _ = far.Write(greeting{"2", wordRefused, g.nonce, ""}.line())
			}
			if err != nil {
				return
			}
		}
	}()
	if _, err := NewClient(within(t), near); !errors.Is(err, errVersion) ||
		!strings.Contains(err.Error(), "stop and start it") {
		t.Error(err)
	}
}

// sent returns what a peer that roughly follows the protocol may send: bytes, frames of yamux,
// frames of calls.
func sent() *rapid.Generator[[]byte] {
	return rapid.OneOf(
		rapid.SliceOfN(rapid.Byte(), 0, 300),
		rapid.Custom(func(t *rapid.T) []byte { // a frame of yamux
			b := []byte{0, rapid.Byte().Draw(t, "type") % 5, 0, rapid.Byte().Draw(t, "flags") % 16}
			b = binary.BigEndian.AppendUint32(b, rapid.Uint32Range(0, 4).Draw(t, "stream"))
			body := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "body")
			length := rapid.OneOf(rapid.Just(uint32(len(body))), rapid.Uint32()).Draw(t, "length")
			return append(binary.BigEndian.AppendUint32(b, length), body...)
		}),
		rapid.Custom(func(t *rapid.T) []byte { // data of the first stream
			body := frame.Append(nil, rapid.SampledFrom([]byte("qaoesw?")).Draw(t, "kind"),
				rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(t, "body"))
			return append(binary.BigEndian.AppendUint32([]byte{0, typeData, 0, 0, 0, 0, 0, 1}, uint32(len(body))), body...)
		}),
	)
}

// TestRandomAnswers: whatever a server answers, nothing panics or hangs, and memory is limited.
func TestRandomAnswers(t *testing.T) {
	attempts := 0
	rapid.Check(t, func(rt *rapid.T) {
		if attempts++; attempts > need.Times(40, 2000) {
			return
		}
		raw := rapid.Bool().Draw(rt, "raw")
		chunks := rapid.SliceOfN(sent(), 1, 20).Draw(rt, "chunks")
		c := impostor(t, func(r *records) {
			var to io.Writer = r
			if raw {
				to = r.conn
			}
			for _, b := range chunks {
				if _, err := to.Write(b); err != nil {
					return
				}
			}
			r.conn.Close()
		})
		name := rapid.SampledFrom([]string{"ping", "run", "run with input", "put", "dial", "forget"}).Draw(rt, "call")
		before := allocated()
		done := make(chan error, 1)
		go func() { done <- calls[name](context.Background(), c) }()
		ended(t, done)
		c.Close()
		if took := allocated() - before; took > 16<<20 {
			t.Errorf("%d MiB were allocated", took>>20)
		}
	})
}

// TestRandomQuestions: a client that sends anything does no harm. When it goes, everything it
// called ends.
func TestRandomQuestions(t *testing.T) {
	attempts := 0
	rapid.Check(t, func(rt *rapid.T) {
		if attempts++; attempts > need.Times(40, 2000) {
			return
		}
		near, far := pair(t)
		done := make(chan error, 1)
		go func() { done <- Serve(context.Background(), far, idle{}) }()
		from := newReader(near)
		session, err := sendGreeting(near, from)
		if err != nil {
			rt.Fatal(err)
		}
		go io.Copy(io.Discard, from) //nolint:errcheck // it ends with the connection
		r := &records{conn: near, mark: session}
		for _, b := range rapid.SliceOfN(sent(), 0, 20).Draw(rt, "chunks") {
			if _, err := r.Write(b); err != nil {
				break
			}
		}
		near.Close()
		ended(t, done)
	})
}

// idle is a place that executes nothing.
type idle struct{}

func (idle) Run(context.Context, host.Command) error { return nil }
func (idle) Put(context.Context, ...host.File) error { return nil }
func (idle) Dial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("no")
}
