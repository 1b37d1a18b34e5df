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

// A Talk is a call in which either end sends any number of JSON messages. It serves for everything
// a Runner cannot do. The server ends it and says how it went.
type Talk struct {
	*call
	Most int // maximum size of a message from the server
}

// Talk begins a talk. The caller must close it.
func (c *Client) Talk(ctx context.Context, about string) (*Talk, error) {
	call, err := c.call(ctx, question{Verb: toTalk, About: about})
	if err != nil {
		return nil, err
	}
	return &Talk{call, maxMessageBytes}, nil
}

// Say sends a message to the server.
func (t *Talk) Say(what any) error {
	if err := frame.WriteJSON(t, message, what); err != nil {
		return t.c.lost(err)
	}
	return nil
}

// Hear waits for the next message from the server. It returns io.EOF when the talk has ended
// successfully, and the server's error when it has failed.
func (t *Talk) Hear(into any) error {
	k, text, err := frame.Read(t, t.Most, nil)
	switch {
	case err != nil:
		return t.c.lost(err)
	case k == message:
		if err := jsonlimit.Unmarshal(text, into); err != nil {
			return t.c.lost(fmt.Errorf("%w: %w", errFrame, err))
		}
		return nil
	case k == says && len(text) <= maxStatusBytes:
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
func (t *Talk) Stop() { _, _ = t.Write(frame.Append(nil, ending)) }

// Close ends the talk, whatever the server does.
func (t *Talk) Close() { t.close() }

// A Talker is a place that supports talks.
type Talker interface {
	host.Runner
	// Talk talks with a caller about a subject. Ctx ends when the caller has gone or has called
	// Stop.
	Talk(ctx context.Context, about string, with *Caller) error
}

// A Caller is the client of a talk, as the server sees it.
type Caller struct {
	*served
	said chan json.RawMessage
}

// ahead is how many of the caller's messages are buffered before the server reads them.
const ahead = 16

// talk has a place handle a talk.
func (c *served) talk(place host.Runner, about string) error {
	talker, ok := place.(Talker)
	if !ok {
		return problem.New(problem.Unable, "it has nothing to say")
	}
	with := &Caller{c, make(chan json.RawMessage, ahead)}
	c.heard = make(chan struct{})
	go with.listen()
	return talker.Talk(c.ctx, about, with)
}

// listen receives the caller's messages until the caller closes the stream.
func (c *Caller) listen() {
	defer close(c.heard)
	for {
		k, text, err := frame.Read(c, maxMessageBytes, nil)
		if err != nil || k != message && k != ending {
			break
		}
		if k == ending {
			c.end(errStopped)
			continue
		}
		select {
		case c.said <- text:
		case <-c.ctx.Done():
		}
	}
	c.end(errGone)
	_, _ = io.Copy(io.Discard, c) // a peer that violates the protocol may have sent more
}

var errStopped = errors.New("who called it wants no more")

// Say sends a message to the caller.
func (c *Caller) Say(what any) error { return frame.WriteJSON(c, message, what) }

// Hear waits for the caller's next message.
func (c *Caller) Hear(into any) error {
	select {
	case text := <-c.said:
		return jsonlimit.Unmarshal(text, into)
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	}
}

// Demand asks for signs of life from now on, one per interval, even while no call is running. When
// nothing at all has been received within timeout, the session ends.
func (c *Client) Demand(every, timeout time.Duration) {
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-c.Ended():
				return
			case <-tick.C:
			}
			before := c.heard()
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			err := c.Ping(ctx)
			cancel()
			if errors.Is(err, context.DeadlineExceeded) && c.heard() == before {
				c.GiveUp(fmt.Errorf("nothing has come from it for %v", timeout))
				return
			}
		}
	}()
}

// GiveUp ends the session for a reason of this end.
func (c *Client) GiveUp(why error) {
	c.mutex.Lock()
	if c.why == nil {
		c.why = why
	}
	c.mutex.Unlock()
	_ = c.session.Close()
}

// Why returns why the session has ended, or nil if it has not.
func (c *Client) Why() error { return c.ended() }
