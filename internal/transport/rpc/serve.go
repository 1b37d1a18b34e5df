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

// A Machine is a place that is a machine of its own, of which more can be asked.
type Machine interface {
	host.Runner
	// Await waits until there is something at a path.
	Await(ctx context.Context, path string) error
	// Join makes network interfaces of the machine what they are to be, as soon as they are there.
	Join(ctx context.Context, nics []boot.NIC) error
	// PowerOff begins to shut the machine down.
	PowerOff() error
	// Forget lets go of what the host has mounted at some places, the innermost first: *InUse if somebody uses it.
	Forget(ctx context.Context, places []string) error
	// Find comes upon what the host has mounted at some places, the outermost first.
	Find(ctx context.Context, places []string) error
	// Unused returns *InUse if something in the machine uses one of its disks with these serial numbers.
	Unused(ctx context.Context, serials []string) error
	// Stir asks the host for something of the machine's files that it cannot know itself.
	Stir(ctx context.Context) error
}

// Serve does at a place what clients ask for who come along a connection, one after the other. When
// one of them goes, all that he has called is ended. It returns when the connection ends, or ctx
// does, which ends the connection.
func Serve(ctx context.Context, conn io.ReadWriteCloser, place host.Runner) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	var calls sync.WaitGroup
	defer calls.Wait()
	from := reader(conn)
	for {
		session, err := receive(conn, from)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		r := &records{conn: conn, from: from, mark: session}
		s, err := yamux.Server(r, settings())
		if err != nil {
			return err
		}
		if e, ok := conn.(Endless); ok && e.Endless() {
			go r.bury(s)
		}
		serve(ctx, s, place, &calls)
		calm(conn)
	}
}

// Endless is a connection that may not tell when a client goes, as virtual consoles do not.
type Endless interface{ Endless() bool }

// bury ends a session when nothing is heard of its client any more, who asks for a sign of life as
// long as something of his is under way. A machine that stood still finds that much time has gone,
// and has not read yet what was sent; so time must be up twice.
func (r *records) bury(s *yamux.Session) {
	tick := time.NewTicker(silent * watching)
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

var errGone = errors.New("who called it has gone")

// serve answers one client, until he goes.
func serve(ctx context.Context, s *yamux.Session, place host.Runner, calls *sync.WaitGroup) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(errGone)
	defer s.Close() //nolint:errcheck // it has ended
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	open := &desk{place: place, begun: map[uint32]*served{}}
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

// A desk knows the calls of a session.
type desk struct {
	place host.Runner
	mutex sync.Mutex
	begun map[uint32]*served
}

// served is a call, seen from the far end.
type served struct {
	*yamux.Stream
	ctx   context.Context
	end   context.CancelCauseFunc
	input chan *served // of a command, when it comes

	// One goroutine at a time reads a stream: two can wait for one another in yamux for ever.
	heard chan struct{} // closed when the one that listens for the caller's end has heard it; nil: there is none
	given bool          // somebody else reads it
}

func (d *desk) begin(ctx context.Context, stream *yamux.Stream) *served {
	c := &served{Stream: stream, input: make(chan *served, 1)}
	c.ctx, c.end = context.WithCancelCause(ctx)
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.begun[stream.StreamID()] = c
	return c
}

// end ends a call. Its stream stays open until the caller closes it, who may take his time to read the answer.
func (d *desk) end(c *served) {
	d.mutex.Lock()
	delete(d.begun, c.StreamID())
	d.mutex.Unlock()
	c.end(errGone)
	switch {
	case c.heard != nil:
		<-c.heard
	case !c.given:
		_, _ = io.Copy(io.Discard, c)
	}
	_ = c.Close()
}

// do answers one question.
func (c *served) do(d *desk) {
	// Whoever has gone takes nothing any more.
	stop := context.AfterFunc(c.ctx, func() { _ = c.SetWriteDeadline(time.Now().Add(cancelGrace)) })
	defer stop()
	var q question
	if err := frame.ReadJSON(c, asks, maxRequestBytes, &q); err != nil {
		return
	}
	place, err := d.at(q.At)
	if err != nil {
		c.say(err)
		return
	}
	switch q.Verb {
	case toRun:
		c.say(c.run(place, q))
	case toInput:
		c.hand(d, q.Of)
	case toPut:
		c.say(c.put(place, q.Files))
	case toDial:
		c.dial(place, q.Network, q.Address)
	case toTalk:
		c.say(c.talk(place, q.About))
	case toPing:
		c.say(nil)
	case toAwait, toJoin, toPowerOff, toForget, toFind, toUnused, toStir:
		c.say(c.ofMachine(d.place, q))
	default:
		c.say(problem.New(problem.Unable, "it does not know %q", shorten(q.Verb, 32)))
	}
}

// Doors is a place from which one gets into others.
type Doors interface {
	// At returns the place that is meant by what the caller says.
	At(where json.RawMessage) (host.Runner, error)
}

// at returns the place at which something is to be done.
func (d *desk) at(where json.RawMessage) (host.Runner, error) {
	if where == nil {
		return d.place, nil
	}
	doors, ok := d.place.(Doors)
	if !ok {
		return nil, problem.New(problem.Unable, "it leads to no other place")
	}
	return doors.At(where)
}

// say answers.
func (c *served) say(err error) { _ = frame.WriteJSON(c, says, answerOf(err)) }

// listen ends the call when its caller closes the stream, who may send new sizes of a terminal before that.
func (c *served) listen(sizes chan<- host.Size) {
	c.heard = make(chan struct{})
	go func() {
		defer close(c.heard)
		for {
			var to host.Size
			if err := frame.ReadJSON(c, sized, 1<<10, &to); err != nil {
				break
			}
			select {
			case sizes <- to:
			case <-c.ctx.Done():
			}
		}
		c.end(errGone)
		_, _ = io.Copy(io.Discard, c) // of one who does not keep to the protocol, there may be more
	}()
}

// hand passes the input to its command, and keeps it open until that has ended.
func (c *served) hand(d *desk, of uint32) {
	d.mutex.Lock()
	to := d.begun[of]
	d.mutex.Unlock()
	if to == nil {
		return // it has ended
	}
	select {
	case to.input <- c:
		c.given = true
		<-to.ctx.Done()
	default: // it has one
	}
}

func (c *served) ofMachine(place host.Runner, q question) error {
	m, ok := place.(Machine)
	if !ok {
		return problem.New(problem.Unable, "it is no machine of its own")
	}
	if q.Verb == toPowerOff {
		return m.PowerOff()
	}
	c.listen(nil)
	switch q.Verb {
	case toForget:
		return m.Forget(c.ctx, q.Paths)
	case toFind:
		return m.Find(c.ctx, q.Paths)
	case toUnused:
		return m.Unused(c.ctx, q.Disks)
	case toJoin:
		return m.Join(c.ctx, q.NICs)
	case toStir:
		return m.Stir(c.ctx)
	}
	return m.Await(c.ctx, q.Path)
}
