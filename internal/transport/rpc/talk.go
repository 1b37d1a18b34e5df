package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/strict/jsonlimit"
	"orrery/internal/transport/frame"
)

// A Stream is a call in which either end sends any number of JSON messages. It serves for everything
// a Runner cannot do. The server ends it and says how it went.
type Stream struct {
	*call
	Most int // maximum size of a message from the server
}

// OpenStream begins a talk. The caller must close it.
func (c *Client) OpenStream(ctx context.Context, about string) (*Stream, error) {
	call, err := c.call(ctx, request{Verb: verbStream, About: about})
	if err != nil {
		return nil, err
	}
	return &Stream{call, maxMessageBytes}, nil
}

// Send sends a message to the server.
func (t *Stream) Send(what any) error {
	if err := frame.WriteJSON(t, kindMessage, what); err != nil {
		return t.c.lost(err)
	}
	return nil
}

// Recv waits for the next message from the server. It returns io.EOF when the talk has ended
// successfully, and the server's error when it has failed.
func (t *Stream) Recv(into any) error {
	k, text, err := frame.Read(t, t.Most, nil)
	switch {
	case err != nil:
		return t.c.lost(err)
	case k == kindMessage:
		if err := jsonlimit.Unmarshal(text, into); err != nil {
			return t.c.lost(fmt.Errorf("%w: %w", errFrame, err))
		}
		return nil
	case k == kindAnswer && len(text) <= maxStatusBytes:
		var a answer
		if err := jsonlimit.Unmarshal(text, &a); err != nil {
			return t.c.lost(fmt.Errorf("%w: %w", errFrame, err))
		}
		if a.Failed {
			return a.err("", nil)
		}
		return io.EOF
	}
	return t.c.lost(fmt.Errorf("%w: a frame %q", errFrame, k))
}

// Stop asks the server to end the talk. The caller must still read the answer, because what the
// server did until then counts.
func (t *Stream) Stop() { _, _ = t.Write(frame.Append(nil, kindCloseWrite)) }

// Close ends the talk, whatever the server does.
func (t *Stream) Close() { t.close() }

// A Handler is a place that supports talks.
type Handler interface {
	host.Runner
	// ServeStream talks with a caller about a subject. Ctx ends when the caller has gone or has called
	// Stop.
	ServeStream(ctx context.Context, about string, with *ServerStream) error
}

// A ServerStream is the client of a talk, as the server sees it.
type ServerStream struct {
	*serverCall
	said chan json.RawMessage
}

// maxBufferedMessages is how many of the caller's messages are buffered before the server reads them.
const maxBufferedMessages = 16

// serveStream has a place handle a talk.
func (c *serverCall) serveStream(place host.Runner, about string) error {
	talker, ok := place.(Handler)
	if !ok {
		return problem.New(problem.Unable, "it does not support streams")
	}
	with := &ServerStream{c, make(chan json.RawMessage, maxBufferedMessages)}
	c.heard = make(chan struct{})
	go with.listen()
	return talker.ServeStream(c.ctx, about, with)
}

// listen receives the caller's messages until the caller closes the stream.
func (c *ServerStream) listen() {
	defer close(c.heard)
	for {
		k, text, err := frame.Read(c, maxMessageBytes, nil)
		if err != nil || k != kindMessage && k != kindCloseWrite {
			break
		}
		if k == kindCloseWrite {
			c.end(errStreamStopped)
			continue
		}
		select {
		case c.said <- text:
		case <-c.ctx.Done():
		}
	}
	c.end(errCallerGone)
	_, _ = io.Copy(io.Discard, c) // a peer that violates the protocol may have sent more
}

var errStreamStopped = errors.New("its caller has stopped it")

// Send sends a message to the caller.
func (c *ServerStream) Send(what any) error { return frame.WriteJSON(c, kindMessage, what) }

// Recv waits for the caller's next message.
func (c *ServerStream) Recv(into any) error {
	select {
	case text := <-c.said:
		return jsonlimit.Unmarshal(text, into)
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	}
}

// SetKeepAlive asks for signs of life from now on, one per interval, even while no call is running. When
// nothing at all has been received within timeout, the session ends.
func (c *Client) SetKeepAlive(every, timeout time.Duration) {
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-c.Done():
				return
			case <-tick.C:
			}
			before := c.heard()
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			err := c.Ping(ctx)
			cancel()
			if errors.Is(err, context.DeadlineExceeded) && c.heard() == before {
				c.CloseWithError(fmt.Errorf("nothing was received from it for %v", timeout))
				return
			}
		}
	}()
}

// CloseWithError ends the session for a reason of this end.
func (c *Client) CloseWithError(why error) {
	c.mutex.Lock()
	if c.why == nil {
		c.why = why
	}
	c.mutex.Unlock()
	_ = c.session.Close()
}

// Err returns why the session has ended, or nil if it has not.
func (c *Client) Err() error { return c.sessionErr() }
