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

// A Talk is a call in which either end says something as often as it likes, each time a message of
// JSON: it is about what no Runner does. The far end brings it to its end, and says how it went.
type Talk struct {
	*call
	Most int // bytes that the far end may say at once
}

// Talk begins one. Who got it closes it.
func (c *Client) Talk(ctx context.Context, about string) (*Talk, error) {
	call, err := c.call(ctx, question{Verb: toTalk, About: about})
	if err != nil {
		return nil, err
	}
	return &Talk{call, maxMessageBytes}, nil
}

// Say says something to the far end.
func (t *Talk) Say(what any) error {
	if err := frame.WriteJSON(t, message, what); err != nil {
		return t.c.lost(err)
	}
	return nil
}

// Hear waits for what the far end says next. It is io.EOF when that has come to a good end, else
// the error with which it ended.
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

// Stop asks the far end to come to an end, which is still to be heard: what it did up to then counts.
func (t *Talk) Stop() { _, _ = t.Write(frame.Append(nil, ending)) }

// Close ends the talk, whatever the far end does.
func (t *Talk) Close() { t.close() }

// A Talker is a place with which one can talk.
type Talker interface {
	host.Runner
	// Talk answers somebody about something. Ctx ends when he has gone or wants no more.
	Talk(ctx context.Context, about string, with *Caller) error
}

// A Caller is who talks with a place.
type Caller struct {
	*served
	said chan json.RawMessage
}

// ahead is how many messages a caller may be ahead of who answers him.
const ahead = 16

// talk lets a place answer.
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

// listen takes in what the caller says, until he closes the stream.
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
	_, _ = io.Copy(io.Discard, c) // of one who does not keep to the protocol, there may be more
}

var errStopped = errors.New("who called it wants no more")

// Say says something to the caller.
func (c *Caller) Say(what any) error { return frame.WriteJSON(c, message, what) }

// Hear waits for what the caller says next.
func (c *Caller) Hear(into any) error {
	select {
	case text := <-c.said:
		return jsonlimit.Unmarshal(text, into)
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	}
}

// Demand wants signs of life from now on, also while nothing is under way: one every so often. When
// nothing at all has come for as long as patience, the session ends.
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

// Why says why the session has ended; nil: it has not.
func (c *Client) Why() error { return c.ended() }
