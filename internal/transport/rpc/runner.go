package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/strict/jsonlimit"
	"orrery/internal/transport/frame"
)

// Runner returns a runner for the machine at the other end. Messages call it place.
func (c *Client) Runner(place string) host.Runner { return runner{c, place, nil} }

// RunnerAt returns a runner for a place behind the server, such as a node. The server's
// NodeResolver interprets where.
func (c *Client) RunnerAt(place string, where any) (host.Runner, error) {
	at, err := json.Marshal(where)
	return runner{c, place, at}, err
}

type runner struct {
	c     *Client
	place string
	in    json.RawMessage
}

// Run runs a command at the other end. When ctx ends, the command and its process group are ended.
func (r runner) Run(ctx context.Context, c host.Command) error {
	if !c.TTY {
		return r.run(ctx, c, nil)
	}
	return host.RunWithRemoteTerminal(ctx, c, r.run)
}

// run is Run, with the user's terminal if there is one.
func (r runner) run(ctx context.Context, c host.Command, user *host.Terminal) error {
	q := request{
		Verb: verbRun, At: r.in, Args: c.Args, Env: c.Env, User: c.User, Input: c.Stdin != nil, Stdout: c.Stdout != nil,
		Stderr: c.Stderr != nil,
		Merged: c.Stdout != nil && host.SameWriter(c.Stdout, c.Stderr),
	}
	if user != nil {
		q.Size = &user.Size
	}
	call, err := r.c.call(ctx, q)
	if err != nil {
		return r.at(err)
	}
	defer call.close()
	fed := func() error { return nil }
	if c.Stdin != nil {
		end, err := r.feed(ctx, call, c.Stdin)
		if err != nil {
			return r.at(err)
		}
		fed = end
	}
	if user != nil && user.Sizes != nil {
		over := make(chan struct{})
		defer close(over)
		go call.resize(user.Sizes, over)
	}
	heard := &outputReceiver{c: c}
	a, err := heard.listen(ctx, call)
	switch {
	case ctx.Err() != nil:
		return abandonedError(ctx, r.place, c, heard.tail.String()+a.Output)
	case heard.err != nil:
		return &host.RunError{Place: r.place, Command: c.Args, Status: -1, Output: heard.tail.String(), Err: heard.err}
	case err != nil:
		return r.at(err)
	case a.Failed:
		return a.err(r.place, c.Args)
	}
	if err := fed(); err != nil {
		return &host.RunError{Place: r.place, Command: c.Args, Status: -1, Output: heard.tail.String(), Err: err}
	}
	return nil
}

// at adds the runner's place to an error.
func (r runner) at(err error) error {
	var p *problem.Problem
	if errors.As(err, &p) && p.Where == "" {
		return p.At(r.place)
	}
	return fmt.Errorf("%s: %w", r.place, err)
}

// feed sends the input of a command on a stream of its own. The returned function does not wait for
// input that the command has not read.
func (r runner) feed(ctx context.Context, to *call, from io.Reader) (end func() error, err error) {
	input, err := r.c.call(ctx, request{Verb: verbInput, Of: to.StreamID()})
	if err != nil {
		return nil, err
	}
	read := make(chan error, 1)
	go func() {
		source := &host.Source{From: from}
		if _, err := io.Copy(&frame.Writer{To: input, Kind: kindStdout}, source); err == nil || source.Err != nil {
			// Otherwise the stream has ended, and the command's answer says how.
			_, _ = input.Write(frame.Append(nil, kindCloseWrite))
		}
		read <- source.Err
	}()
	return func() error {
		defer input.close()
		select {
		case err := <-read:
			return err
		default:
			return nil
		}
	}, nil
}

// resize sends each new size of the terminal to the server.
func (c *call) resize(sizes <-chan host.Size, over <-chan struct{}) {
	for {
		select {
		case to := <-sizes:
			if frame.WriteJSON(c, kindWindowSize, to) != nil {
				return
			}
		case <-over:
			return
		}
	}
}

// An outputReceiver receives the output of a command and passes it to the command's writers.
type outputReceiver struct {
	c    host.Command
	tail host.TailBuffer // the last output, for errors
	err  error           // the error of a writer
	deaf atomic.Bool
}

// listen waits until a command has ended. When ctx ends, it ends the command and waits at most
// cancelGrace for the answer.
func (e *outputReceiver) listen(ctx context.Context, from *call) (answer, error) {
	var said answer
	done := make(chan error, 1)
	go func() { done <- e.receiveFrames(from, &said) }()
	select {
	case err := <-done:
		return said, err
	case <-ctx.Done():
	}
	go from.Stream.Close() //nolint:errcheck // this is what ends it
	select {
	case err := <-done:
		return said, err
	case <-time.After(cancelGrace):
		e.deaf.Store(true) // the caller no longer waits: write nothing to its writers
		return answer{}, nil
	}
}

// receiveFrames passes on all output until the answer. If a writer fails, it ends the command.
func (e *outputReceiver) receiveFrames(from *call, said *answer) error {
	piece := make([]byte, maxDataBytes)
	for {
		k, text, err := frame.Read(from, maxStatusBytes, piece)
		if err != nil {
			return from.c.lost(err)
		}
		switch k {
		case kindStdout:
			err = e.write(e.c.Stdout, text, e.c.Stderr != nil)
		case kindStderr:
			err = e.write(e.c.Stderr, text, true)
		case kindAnswer:
			if err := jsonlimit.Unmarshal(text, said); err != nil {
				return from.c.lost(fmt.Errorf("%w: %w", errFrame, err))
			}
			return nil
		default:
			return from.c.lost(fmt.Errorf("%w: a frame %q", errFrame, k))
		}
		if err != nil {
			e.err = err
			_ = from.SetReadDeadline(time.Now().Add(cancelGrace))
			go from.Stream.Close() //nolint:errcheck // this is what ends it
		}
	}
}

func (e *outputReceiver) write(to io.Writer, text []byte, keep bool) error {
	if keep {
		_, _ = e.tail.Write(text) // never fails: it writes to memory
	}
	if to == nil || e.err != nil || e.deaf.Load() {
		return nil
	}
	_, err := to.Write(text)
	return err
}

// Put writes files at the other end, each atomically.
func (r runner) Put(ctx context.Context, files ...host.File) error {
	if len(files) == 0 {
		return nil
	}
	q := request{Verb: verbPut, At: r.in}
	for _, f := range files {
		q.Files = append(q.Files, file{f.Path, f.Owner, f.Mode, f.Link, len(f.Content)})
	}
	call, err := r.c.call(ctx, q)
	if err != nil {
		return r.at(err)
	}
	defer call.close()
	err = call.within(ctx, func() error {
		go func() {
			content := &frame.Writer{To: call, Kind: kindStdout}
			for _, f := range files {
				if _, err := content.Write(f.Content); err != nil {
					return // the server rejects the files, and its answer says why
				}
			}
		}()
		a, err := call.answer()
		if err != nil {
			return err
		}
		return a.err(r.place, []string{"put"})
	})
	if err != nil {
		return r.at(err)
	}
	return nil
}

// Dial connects from the other end. The address must be numeric, because names may have different
// meanings at each end.
func (r runner) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, problem.New(problem.Failed, "%s is not an address, and names are not looked up", address).At(r.place)
	}
	call, err := r.c.call(ctx, request{Verb: verbDial, At: r.in, Network: network, Address: address})
	if err != nil {
		return nil, r.at(err)
	}
	err = call.within(ctx, func() error {
		a, err := call.answer()
		if err != nil {
			return err
		}
		return a.err("", nil)
	})
	if err != nil {
		call.close()
		return nil, r.at(err)
	}
	return &conn{call: call, to: net.TCPAddrFromAddrPort(to),
		from: frame.Reader{From: call.Stream, Kind: kindStdout, End: kindCloseWrite}}, nil
}
