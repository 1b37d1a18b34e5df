package remote

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"sync"
	"time"

	"orrery/internal/apply"
	"orrery/internal/host"
	"orrery/internal/host/doctor"
	"orrery/internal/host/path"
	"orrery/internal/host/waits"
	"orrery/internal/problem"
	"orrery/internal/secret"
	"orrery/internal/site"
	"orrery/internal/strict/jsonlimit"
	"orrery/internal/transport/rpc"
)

// A Machine is what a helper offers to the control host.
type Machine interface {
	// Host returns the machine's part of the site with this key. Name is the site's name for the
	// machine.
	Host(name, key string, secrets apply.Secrets) apply.Host
	// Inspect returns which of the things that nodes need the machine has.
	Inspect() doctor.Facts
	// Try returns, for each path to another host, the size of the largest packet that came back, or
	// 0 if none did.
	Try(ctx context.Context, ways []path.Route) []int
	// Outfit installs what nodes of the given engines need and the machine lacks. It returns the
	// packages, and reports what it does.
	Outfit(ctx context.Context, engines []string, say func(string)) (packages []string, err error)
}

// Serve answers requests on a connection until the connection ends or is silent for too long. By
// the time it returns, everything in progress has ended.
func Serve(ctx context.Context, conn io.ReadWriteCloser, m Machine, self Greeting) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	heard := &watchdog{ReadWriteCloser: conn, last: time.Now()}
	go heard.watch(ctx)
	err := rpc.Serve(ctx, heard, newHelper(m, self))
	if ctx.Err() != nil || errors.Is(err, fs.ErrClosed) || errors.Is(err, net.ErrClosed) {
		return nil // the normal end
	}
	return err
}

// A watchdog closes a connection on which nothing has arrived for too long. The peer asks for a sign
// of life every few seconds (rpc.Client.Demand), so it must be gone. A failed network between the
// hosts does not report that. A peer that is gone must not keep the site's lock.
type watchdog struct {
	io.ReadWriteCloser
	mutex sync.Mutex
	last  time.Time
}

// silenceTimeout is how long nothing may arrive. It must be exceeded twice: a machine that was suspended
// sees the time jump, and has not yet read what was sent in between.
var silenceTimeout = 10 * time.Second // variable, so that tests can change it

func (v *watchdog) Read(p []byte) (int, error) {
	n, err := v.ReadWriteCloser.Read(p)
	v.mutex.Lock()
	v.last = time.Now()
	v.mutex.Unlock()
	return n, err
}

func (v *watchdog) watch(ctx context.Context) {
	tick := time.NewTicker(silenceTimeout)
	defer tick.Stop()
	for quiet, before := 0, (time.Time{}); quiet < 2; quiet++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		v.mutex.Lock()
		last := v.last
		v.mutex.Unlock()
		if !last.Equal(before) {
			quiet, before = -1, last
		}
	}
	_ = v.Close()
}

// A helper answers calls about the hosts of a machine, one for each place that was requested.
type helper struct {
	host.Local
	machine Machine
	self    Greeting
	methods map[string]anyMethod
	mutex   sync.Mutex
	hosts   map[callTarget]*servedHost
}

func newHelper(m Machine, self Greeting) *helper {
	h := &helper{machine: m, self: self, methods: map[string]anyMethod{}, hosts: map[callTarget]*servedHost{}}
	for _, m := range methods() {
		name, _ := m.about()
		h.methods[name] = m
	}
	return h
}

// servedHost is a host with the secrets that it borrows.
type servedHost struct {
	apply.Host
	secrets *secretProxy
}

// of returns the host for a place.
func (h *helper) of(p callTarget) *servedHost {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	p.Node = nil
	if h.hosts[p] == nil {
		s := &secretProxy{Keyring: secret.NewKeyring(&site.Site{Name: p.Key}, host.Dirs{})}
		h.hosts[p] = &servedHost{h.machine.Host(p.Host, p.Key, s), s}
	}
	return h.hosts[p]
}

// Resolve returns the Runner for a node.
func (h *helper) Resolve(where json.RawMessage) (host.Runner, error) {
	var p callTarget
	if err := jsonlimit.Unmarshal(where, &p); err != nil {
		return nil, err
	}
	if p.Node == nil {
		return nil, errors.New("no node given")
	}
	return h.of(p).Nodes.Runner(p.Node)
}

// ServeStream answers a call.
func (h *helper) ServeStream(ctx context.Context, about string, with *rpc.ServerStream) error {
	ctx = waits.WithReporter(ctx, func(text string) { _ = with.Send(response{Waits: text}) })
	result, err := h.answer(ctx, about, with)
	if err != nil {
		return with.Send(response{Fault: toWireError(err)})
	}
	text, err := json.Marshal(result)
	if err != nil {
		return err
	}
	return with.Send(response{Result: text})
}

func (h *helper) answer(ctx context.Context, about string, with *rpc.ServerStream) (any, error) {
	m, ok := h.methods[about]
	if !ok {
		return nil, problem.New(problem.Unable, "the helper on this host does not support %q", about).
			Try("install the same orrery on all control hosts of the site")
	}
	return m.serve(ctx, h, with)
}

var greetMethod = method[none, Greeting]{
	name: "greet", callOptions: callOptions{abandoned: true},
	answer: func(_ context.Context, c *serverCall, _ none) (Greeting, error) {
		g := c.helper.self
		g.Time = time.Now()
		return g, nil
	},
}

// parts returns the pieces that the caller sends.
func (c *serverCall) parts() *pieceReader { return &pieceReader{with: c.ServerStream} }

// pieceReader is a reader of the pieces of a stream.
type pieceReader struct {
	with *rpc.ServerStream
	left []byte
	end  bool
}

func (p *pieceReader) Read(b []byte) (int, error) {
	for len(p.left) == 0 {
		if p.end {
			return 0, io.EOF
		}
		var next pieceMessage
		if err := p.with.Recv(&next); err != nil {
			return 0, err
		}
		p.left, p.end = next.Bytes, next.End
	}
	n := copy(b, p.left)
	p.left = p.left[n:]
	return n, nil
}

// send sends the content of a reader in pieces.
func (c *serverCall) send(log io.ReadCloser) error {
	defer log.Close() //nolint:errcheck // it was only read
	piece := make([]byte, maxPieceBytes)
	for {
		n, err := log.Read(piece)
		if n > 0 {
			if err := c.Send(response{Bytes: piece[:n]}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
