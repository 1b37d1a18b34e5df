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

// A Client makes calls over a connection. Its methods may be called concurrently.
type Client struct {
	session *yamux.Session
	heard   func() int64 // returns how many records have been received
	release func()       // releases what belongs to the connection; may be nil

	released sync.Once

	mutex sync.Mutex
	why   error // why this end ended the session, or nil
}

// NewClient greets the server of a connection and returns a client for it. It waits for the answer until
// ctx ends. If ctx ends first, and after Close, the connection is closed.
func NewClient(ctx context.Context, conn io.ReadWriteCloser) (*Client, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	from := newReader(conn)
	session, err := sendGreeting(conn, from)
	if !stop() {
		return nil, problem.New(problem.Failed, "no answer").Because(context.Cause(ctx))
	}
	if err != nil {
		_ = conn.Close()
		return nil, greetingError(err)
	}
	g := &frameFilter{records: &records{conn: singleSession{conn}, from: from, mark: session}}
	s, err := yamux.Client(g, yamuxConfig())
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	c := &Client{session: s, heard: g.records.heard.Load}
	go c.watch()
	return c, nil
}

// watch asks for signs of life while a call is running. A frozen machine does not answer, and the
// client keeps waiting for it. A guest that has rebooted does not know the session and says so.
// That ends calls that would otherwise wait for ever.
func (c *Client) watch() {
	tick := time.NewTicker(pingInterval)
	defer tick.Stop()
	for {
		select {
		case <-c.Done():
			return
		case <-tick.C:
		}
		if c.session.NumStreams() == 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), pingInterval)
		_ = c.Ping(ctx)
		cancel()
	}
}

// singleSession is a connection that serves only one session. It has no deadlines, so ending the session
// closes it.
type singleSession struct{ io.ReadWriteCloser }

// greetingError returns the error that explains why no session has begun.
func greetingError(err error) error {
	p := problem.New(problem.Failed, "the session cannot begin").Because(err)
	switch {
	case errors.Is(err, errVersion):
		return p.Try("stop and start it to run the agent of this version")
	case errors.Is(err, errNoise):
		return p.Try("orrery restart --hard NODE boots the guest with the agent; orrery console NODE shows what runs there")
	}
	return p
}

// Close ends the session, and every call that is running.
func (c *Client) Close() error {
	err := c.session.Close()
	c.released.Do(func() {
		if c.release != nil {
			c.release()
		}
	})
	return err
}

// Done returns a channel that is closed when the session has ended, whichever end ended it.
func (c *Client) Done() <-chan struct{} { return c.session.CloseChan() }

// Ping asks for a sign of life and waits for it until ctx ends.
func (c *Client) Ping(ctx context.Context) error { return c.ask(ctx, request{Verb: verbPing}) }

// Await waits until a path exists on the machine, or ctx ends.
func (c *Client) Await(ctx context.Context, path string) error {
	return c.ask(ctx, request{Verb: verbAwait, Path: path})
}

// ConfigureNICs configures network interfaces of the machine. It waits for interfaces that do not exist yet
// until ctx ends.
func (c *Client) ConfigureNICs(ctx context.Context, nics []boot.NIC) error {
	return c.ask(ctx, request{Verb: verbConfigureNICs, NICs: nics})
}

// PowerOff shuts the machine down. It returns when the shutdown has begun.
func (c *Client) PowerOff(ctx context.Context) error {
	return c.ask(ctx, request{Verb: verbPowerOff})
}

// Unmount unmounts some paths in the machine, the innermost first. It returns *InUse if a process
// there uses one of them.
func (c *Client) Unmount(ctx context.Context, places []string) error {
	return c.ask(ctx, request{Verb: verbUnmount, Paths: places})
}

// RefreshMounts makes the machine notice what is mounted at some paths, the outermost first.
func (c *Client) RefreshMounts(ctx context.Context, places []string) error {
	return c.ask(ctx, request{Verb: verbRefreshMounts, Paths: places})
}

// CheckDisksUnused returns *InUse if something in the machine uses one of its disks with these serial numbers.
func (c *Client) CheckDisksUnused(ctx context.Context, serials []string) error {
	return c.ask(ctx, request{Verb: verbCheckDisksUnused, Disks: serials})
}

// ask makes a call whose answer has no content but success or failure.
func (c *Client) ask(ctx context.Context, q request) error {
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

// WakeFileServer makes the guest look up a file that only the host can know. The request makes the host's
// file server look at everything in its queue.
func (c *Client) WakeFileServer(ctx context.Context) error {
	return c.ask(ctx, request{Verb: verbWakeFileServer})
}

// A call is a request that has been sent.
type call struct {
	*yamux.Stream
	c *Client
}

// call sends a request. The caller must close the call.
func (c *Client) call(ctx context.Context, q request) (*call, error) {
	type opened struct {
		stream *yamux.Stream
		err    error
	}
	done := make(chan opened, 1)
	go func() {
		stream, err := c.session.OpenStream()
		if err == nil {
			err = frame.WriteJSON(stream, kindRequest, q)
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

// close tells the server that the caller no longer waits, which ends the call. It does not block.
func (c *call) close() {
	_ = c.SetDeadline(time.Unix(1, 0))
	go c.Stream.Close() //nolint:errcheck // it only says so
}

// within runs work on the stream and waits for it until ctx ends. Closing the call then ends the
// work.
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

// answer waits for the answer to the call.
func (c *call) answer() (a answer, err error) {
	if err := frame.ReadJSON(c, kindAnswer, maxStatusBytes, &a); err != nil {
		return a, c.c.lost(err)
	}
	return a, nil
}

// lost returns the error for a call without an answer. If the server has violated the protocol,
// lost ends the session, because nothing else it sends can be trusted.
func (c *Client) lost(err error) error {
	if errors.Is(err, errFrame) {
		c.mutex.Lock()
		c.why = err
		c.mutex.Unlock()
		go c.session.Close() //nolint:errcheck // it ends
	} else if why := c.sessionErr(); why != nil {
		err = why
	}
	var p *problem.Problem
	switch {
	case errors.As(err, &p):
		return err
	case errors.Is(err, errOtherSession):
		err = errors.New("it has restarted, or another client has connected to it")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, yamux.ErrSessionShutdown),
		errors.Is(err, yamux.ErrStreamClosed):
		err = errors.New("it has ended")
	case !errors.Is(err, errFrame) && !errors.Is(err, errUnsolicited):
		err = fmt.Errorf("the connection to it failed: %w", err)
	}
	return problem.New(problem.Failed, "the other end does not answer").Because(err).
		Try("check its console; if this persists, stop and start it")
}

// sessionErr returns why the session has ended, or nil if it has not.
func (c *Client) sessionErr() error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.why == nil && c.session.IsClosed() {
		_, c.why = c.session.AcceptStream() // yamux returns the reason here
	}
	return c.why
}
