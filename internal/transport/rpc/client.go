package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"orrery/internal/guest/boot"
	"orrery/internal/problem"
	"orrery/internal/transport/frame"
)

// A Client has things done at the far end of a connection. Its methods may be called at the same time.
type Client struct {
	session *yamux.Session
	heard   func() int64 // how many records have come
	release func()       // what belongs to the connection, if anything does

	released sync.Once

	mutex sync.Mutex
	why   error // the session was ended here
}

// Open greets who is at the far end of a connection, and returns a client of it. It waits for the
// answer until ctx ends; after that, and after Close, the connection is closed.
func Open(ctx context.Context, conn io.ReadWriteCloser) (*Client, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	from := reader(conn)
	session, err := greet(conn, from)
	if !stop() {
		return nil, problem.New(problem.Failed, "nobody answers").Because(context.Cause(ctx))
	}
	if err != nil {
		_ = conn.Close()
		return nil, misunderstood(err)
	}
	g := &guard{records: &records{conn: once{conn}, from: from, mark: session}}
	s, err := yamux.Client(g, settings())
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	c := &Client{session: s, heard: g.records.heard.Load}
	go c.watch()
	return c, nil
}

// watch asks for signs of life while something is under way. A machine that stands still gives
// none, and is waited for. One that has begun anew, as a guest does that reboots, does not know of
// the session and says so, which ends what would else be waited for without end.
func (c *Client) watch() {
	tick := time.NewTicker(watching)
	defer tick.Stop()
	for {
		select {
		case <-c.Ended():
			return
		case <-tick.C:
		}
		if c.session.NumStreams() == 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), watching)
		_ = c.Ping(ctx)
		cancel()
	}
}

// once is a connection that serves one session: the end of that is its own.
type once struct{ io.ReadWriteCloser }

// misunderstood says why no session has begun.
func misunderstood(err error) error {
	p := problem.New(problem.Failed, "no session begins").Because(err)
	switch {
	case errors.Is(err, errVersion):
		return p.Try("stop and start it, so that it runs the agent of this version")
	case errors.Is(err, errNoise):
		return p.Try("orrery restart --hard NODE boots the guest with the agent; orrery console NODE shows what runs there")
	}
	return p
}

// Close ends the session, and with it all that is under way at the far end.
func (c *Client) Close() error {
	err := c.session.Close()
	c.released.Do(func() {
		if c.release != nil {
			c.release()
		}
	})
	return err
}

// Ended is closed when the session has ended, whoever ended it.
func (c *Client) Ended() <-chan struct{} { return c.session.CloseChan() }

// Ping asks for a sign of life, and waits for it until ctx ends.
func (c *Client) Ping(ctx context.Context) error { return c.ask(ctx, question{Verb: toPing}) }

// Await waits until there is something at a path of the far end, or ctx ends.
func (c *Client) Await(ctx context.Context, path string) error {
	return c.ask(ctx, question{Verb: toAwait, Path: path})
}

// Join has the machine at the far end make network interfaces what they are to be, and waits for
// those that have not come yet, until ctx ends.
func (c *Client) Join(ctx context.Context, nics []boot.NIC) error {
	return c.ask(ctx, question{Verb: toJoin, NICs: nics})
}

// PowerOff has the machine at the far end shut down. It returns when that has begun.
func (c *Client) PowerOff(ctx context.Context) error {
	return c.ask(ctx, question{Verb: toPowerOff})
}

// Forget has the machine let go of what is mounted at some places, the innermost first: *InUse if
// somebody there uses it.
func (c *Client) Forget(ctx context.Context, places []string) error {
	return c.ask(ctx, question{Verb: toForget, Paths: places})
}

// Find has the machine come upon what is mounted at some places by now, the outermost first.
func (c *Client) Find(ctx context.Context, places []string) error {
	return c.ask(ctx, question{Verb: toFind, Paths: places})
}

// Unused returns *InUse if something in the machine uses one of its disks with these serial numbers.
func (c *Client) Unused(ctx context.Context, serials []string) error {
	return c.ask(ctx, question{Verb: toUnused, Disks: serials})
}

// ask asks something that is answered with a yes.
func (c *Client) ask(ctx context.Context, q question) error {
	call, err := c.call(ctx, q)
	if err != nil {
		return err
	}
	defer call.close()
	return call.within(ctx, func() error {
		a, err := call.answer()
		if err != nil {
			return err
		}
		return a.err("", nil)
	})
}

// Stir has the machine ask its host for something of its files, so that whoever serves them looks
// for all that was asked.
func (c *Client) Stir(ctx context.Context) error { return c.ask(ctx, question{Verb: toStir}) }

// A call is a question that has been asked.
type call struct {
	*yamux.Stream
	c *Client
}

// call asks. Who got it closes it.
func (c *Client) call(ctx context.Context, q question) (*call, error) {
	type opened struct {
		stream *yamux.Stream
		err    error
	}
	done := make(chan opened, 1)
	go func() {
		stream, err := c.session.OpenStream()
		if err == nil {
			err = frame.WriteJSON(stream, asks, q)
		}
		done <- opened{stream, err}
	}()
	select {
	case o := <-done:
		if o.err == nil {
			return &call{o.stream, c}, nil
		}
		if o.stream != nil {
			go o.stream.Close() //nolint:errcheck // there is nothing in it
		}
		return nil, c.lost(o.err)
	case <-ctx.Done():
		go func() {
			if o := <-done; o.stream != nil {
				_ = o.stream.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// close tells the far end that nobody waits for the call any more, which ends it. It waits for nobody itself.
func (c *call) close() {
	_ = c.SetDeadline(time.Unix(1, 0))
	go c.Stream.Close() //nolint:errcheck // it only says so
}

// within waits for some work on the stream until ctx ends, which ends the work, too.
func (c *call) within(ctx context.Context, work func() error) error {
	done := make(chan error, 1)
	go func() { done <- work() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// answer waits for how the call went.
func (c *call) answer() (a answer, err error) {
	if err := frame.ReadJSON(c, says, maxStatusBytes, &a); err != nil {
		return a, c.c.lost(err)
	}
	return a, nil
}

// lost says that a call has no answer. One whose far end does not keep to the protocol ends the
// session: nothing that it says can be trusted.
func (c *Client) lost(err error) error {
	if errors.Is(err, errFrame) {
		c.mutex.Lock()
		c.why = err
		c.mutex.Unlock()
		go c.session.Close() //nolint:errcheck // it ends
	} else if why := c.ended(); why != nil {
		err = why
	}
	var p *problem.Problem
	switch {
	case errors.As(err, &p):
		return err
	case errors.Is(err, errOthers):
		err = errors.New("it has begun anew, or somebody else speaks to it")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, yamux.ErrSessionShutdown),
		errors.Is(err, yamux.ErrStreamClosed):
		err = errors.New("it has gone")
	case !errors.Is(err, errFrame) && !errors.Is(err, errForward):
		err = fmt.Errorf("the connection to it fails: %w", err)
	}
	return problem.New(problem.Failed, "the far end does not answer").Because(err).
		Try("see what it says on its console; stop and start it if it stays so")
}

// ended says why the session has ended, if so it is.
func (c *Client) ended() error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.why == nil && c.session.IsClosed() {
		_, c.why = c.session.AcceptStream() // which is how yamux tells
	}
	return c.why
}
