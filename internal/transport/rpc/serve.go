package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"orrery/internal/guest/boot"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/transport/frame"
)

// A Machine is a place that is a whole machine and so supports more calls.
type Machine interface {
	host.Runner
	// Await waits until a path exists.
	Await(ctx context.Context, path string) error
	// ConfigureNICs configures network interfaces of the machine, each as soon as it exists.
	ConfigureNICs(ctx context.Context, nics []boot.NIC) error
	// PowerOff begins to shut the machine down.
	PowerOff() error
	// Unmount unmounts what the host has mounted at some paths, the innermost first. It returns
	// *InUse if a process uses one of them.
	Unmount(ctx context.Context, places []string) error
	// RefreshMounts looks up what the host has mounted at some paths, the outermost first.
	RefreshMounts(ctx context.Context, places []string) error
	// CheckDisksUnused returns *InUse if something in the machine uses one of its disks with these serial
	// numbers.
	CheckDisksUnused(ctx context.Context, serials []string) error
	// WakeFileServer looks up a file of the machine that only the host can know.
	WakeFileServer(ctx context.Context) error
}

// Serve executes at place what the clients of a connection request, one client after the other.
// When a client goes, Serve ends everything it has called. Serve returns when the connection ends.
// When ctx ends, Serve closes the connection and returns.
func Serve(ctx context.Context, conn io.ReadWriteCloser, place host.Runner) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	var calls sync.WaitGroup
	defer calls.Wait()
	from := newReader(conn)
	for {
		session, err := acceptGreeting(conn, from)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		r := &records{conn: conn, from: from, mark: session}
		s, err := yamux.Server(r, yamuxConfig())
		if err != nil {
			return err
		}
		if e, ok := conn.(NoHangup); ok && e.NoHangup() {
			go r.closeWhenSilent(s)
		}
		serve(ctx, s, place, &calls)
		clearDeadline(conn)
	}
}

// NoHangup is a connection that may not report that a client has gone, as virtual consoles do not.
type NoHangup interface{ NoHangup() bool }

// closeWhenSilent ends a session when nothing is received from its client any more. A client asks for signs of
// life while it has a call running. A machine that was frozen finds that much time has passed
// before it reads what was sent meanwhile. So two intervals must pass in silence.
func (r *records) closeWhenSilent(s *yamux.Session) {
	tick := time.NewTicker(silentIntervals * pingInterval)
	defer tick.Stop()
	for quiet, last := 0, int64(0); quiet < 2; {
		select {
		case <-s.CloseChan():
			return
		case <-tick.C:
		}
		quiet++
		if now := r.heard.Load(); now != last || s.NumStreams() == 0 {
			quiet, last = 0, now
		}
	}
	_ = s.Close()
}

var errCallerGone = errors.New("its caller has disconnected")

// serve answers one client until it goes.
func serve(ctx context.Context, s *yamux.Session, place host.Runner, calls *sync.WaitGroup) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(errCallerGone)
	defer s.Close() //nolint:errcheck // it has ended
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	open := &serverSession{place: place, begun: map[uint32]*serverCall{}}
	for {
		stream, err := s.AcceptStream()
		if err != nil {
			return
		}
		c := open.begin(ctx, stream)
		calls.Go(func() {
			defer open.end(c)
			c.do(open)
		})
	}
}

// A serverSession knows the calls of a session.
type serverSession struct {
	place host.Runner
	mutex sync.Mutex
	begun map[uint32]*serverCall
}

// serverCall is a call at the server.
type serverCall struct {
	*yamux.Stream
	ctx   context.Context
	end   context.CancelCauseFunc
	input chan *serverCall // the input of a command, when its stream arrives

	// Only one goroutine may read a stream at a time: two can block each other in yamux for ever.
	heard chan struct{} // closed when the goroutine that waits for the caller has ended; nil if there is none
	given bool          // another goroutine reads the stream
}

func (d *serverSession) begin(ctx context.Context, stream *yamux.Stream) *serverCall {
	c := &serverCall{Stream: stream, input: make(chan *serverCall, 1)}
	c.ctx, c.end = context.WithCancelCause(ctx)
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.begun[stream.StreamID()] = c
	return c
}

// end ends a call. The stream stays open until the caller, which may read the answer slowly, closes
// it.
func (d *serverSession) end(c *serverCall) {
	d.mutex.Lock()
	delete(d.begun, c.StreamID())
	d.mutex.Unlock()
	c.end(errCallerGone)
	switch {
	case c.heard != nil:
		<-c.heard
	case !c.given:
		_, _ = io.Copy(io.Discard, c)
	}
	_ = c.Close()
}

// do answers one request.
func (c *serverCall) do(d *serverSession) {
	// A caller that has gone does not read any more, so writes must not block for ever.
	stop := context.AfterFunc(c.ctx, func() { _ = c.SetWriteDeadline(time.Now().Add(cancelGrace)) })
	defer stop()
	var q request
	if err := frame.ReadJSON(c, kindRequest, maxRequestBytes, &q); err != nil {
		return
	}
	place, err := d.resolve(q.At)
	if err != nil {
		c.respond(err)
		return
	}
	switch q.Verb {
	case verbRun:
		c.respond(c.run(place, q))
	case verbInput:
		c.forwardInput(d, q.Of)
	case verbPut:
		c.respond(c.put(place, q.Files))
	case verbDial:
		c.dial(place, q.Network, q.Address)
	case verbStream:
		c.respond(c.serveStream(place, q.About))
	case verbPing:
		c.respond(nil)
	case verbAwait, verbConfigureNICs, verbPowerOff, verbUnmount, verbRefreshMounts, verbCheckDisksUnused,
		verbWakeFileServer:
		c.respond(c.callMachine(d.place, q))
	default:
		c.respond(problem.New(problem.Unable, "unknown request %q", shorten(q.Verb, 32)))
	}
}

// NodeResolver is a place that leads to other places.
type NodeResolver interface {
	// Resolve returns the place that a caller names.
	Resolve(where json.RawMessage) (host.Runner, error)
}

// resolve returns the place where the request must be executed.
func (d *serverSession) resolve(where json.RawMessage) (host.Runner, error) {
	if where == nil {
		return d.place, nil
	}
	doors, ok := d.place.(NodeResolver)
	if !ok {
		return nil, problem.New(problem.Unable, "it cannot forward requests")
	}
	return doors.Resolve(where)
}

// respond sends the answer.
func (c *serverCall) respond(err error) { _ = frame.WriteJSON(c, kindAnswer, newAnswer(err)) }

// listen ends the call when the caller closes the stream. Until then it receives new sizes of the
// terminal.
func (c *serverCall) listen(sizes chan<- host.Size) {
	c.heard = make(chan struct{})
	go func() {
		defer close(c.heard)
		for {
			var to host.Size
			if err := frame.ReadJSON(c, kindWindowSize, 1<<10, &to); err != nil {
				break
			}
			select {
			case sizes <- to:
			case <-c.ctx.Done():
			}
		}
		c.end(errCallerGone)
		_, _ = io.Copy(io.Discard, c) // a peer that violates the protocol may have sent more
	}()
}

// forwardInput passes the input to its command and keeps the stream open until the command has ended.
func (c *serverCall) forwardInput(d *serverSession, of uint32) {
	d.mutex.Lock()
	to := d.begun[of]
	d.mutex.Unlock()
	if to == nil {
		return // the command has ended
	}
	select {
	case to.input <- c:
		c.given = true
		<-to.ctx.Done()
	default: // the command already has an input
	}
}

func (c *serverCall) callMachine(place host.Runner, q request) error {
	m, ok := place.(Machine)
	if !ok {
		return problem.New(problem.Unable, "it is not a virtual machine")
	}
	if q.Verb == verbPowerOff {
		return m.PowerOff()
	}
	c.listen(nil)
	switch q.Verb {
	case verbUnmount:
		return m.Unmount(c.ctx, q.Paths)
	case verbRefreshMounts:
		return m.RefreshMounts(c.ctx, q.Paths)
	case verbCheckDisksUnused:
		return m.CheckDisksUnused(c.ctx, q.Disks)
	case verbConfigureNICs:
		return m.ConfigureNICs(c.ctx, q.NICs)
	case verbWakeFileServer:
		return m.WakeFileServer(c.ctx)
	}
	return m.Await(c.ctx, q.Path)
}
