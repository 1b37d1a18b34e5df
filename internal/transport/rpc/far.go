package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"orrery/internal/host"
	"orrery/internal/transport/frame"
)

// run runs a command.
func (c *serverCall) run(place host.Runner, q request) error {
	sizes := make(chan host.Size)
	c.listen(sizes)
	cmd := host.Command{Args: q.Args, Env: q.Env, User: q.User}
	if q.Input {
		cmd.Stdin = &commandInput{of: c}
	}
	if q.Stdout {
		cmd.Stdout = &frame.Writer{To: c, Kind: kindStdout}
	}
	switch {
	case q.Merged:
		cmd.Stderr = cmd.Stdout
	case q.Stderr:
		cmd.Stderr = &frame.Writer{To: c, Kind: kindStderr}
	}
	if q.Size != nil && q.Input && q.Stdout {
		cmd.TTY, cmd.Terminal = true, &host.Terminal{Keys: cmd.Stdin, Screen: cmd.Stdout, Size: *q.Size, Sizes: sizes}
		cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, nil, nil
	}
	return place.Run(c.ctx, cmd)
}

// commandInput is the standard input of a command. Its stream may arrive after the command has started.
type commandInput struct {
	of   *serverCall
	from *frameReader
}

func (i *commandInput) Read(p []byte) (int, error) {
	if i.from == nil {
		select {
		case stream := <-i.of.input:
			i.from = &frameReader{from: stream}
		case <-i.of.ctx.Done():
			return 0, context.Cause(i.of.ctx)
		}
	}
	n, err := i.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		// The caller has not ended the input. Wait for the call's end, so that the command does not
		// take the error for the end of its input.
		<-i.of.ctx.Done()
		err = context.Cause(i.of.ctx)
	}
	return n, err
}

// put writes files after all of them have been received completely.
func (c *serverCall) put(place host.Runner, files []file) error {
	content := &frameReader{from: c}
	var all []host.File
	for _, f := range files {
		var b bytes.Buffer
		if n, err := io.CopyN(&b, content, int64(f.Size)); err != nil {
			return fmt.Errorf("%s: only %d of %d bytes were received: %w", f.Path, n, f.Size, err)
		}
		all = append(all, host.File{Path: f.Path, Content: b.Bytes(), Owner: f.Owner, Mode: f.Mode, Link: f.Link})
	}
	c.listen(nil)
	return place.Put(c.ctx, all...)
}

// frameReader reads the bytes that frames carry.
type frameReader struct {
	from  io.Reader
	rest  []byte
	piece []byte
}

func (c *frameReader) Read(p []byte) (int, error) {
	for len(c.rest) == 0 {
		if c.piece == nil {
			c.piece = make([]byte, maxDataBytes)
		}
		k, text, err := frame.Read(c.from, maxDataBytes, c.piece)
		if err != nil {
			return 0, frame.Unexpected(err)
		}
		if k == kindCloseWrite {
			return 0, io.EOF
		}
		if k != kindStdout {
			return 0, errFrame
		}
		c.rest = text
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// dial makes a connection and copies bytes in both directions.
func (c *serverCall) dial(place host.Runner, network, address string) {
	to, err := place.Dial(c.ctx, network, address)
	c.respond(err)
	if err != nil {
		return
	}
	defer to.Close() //nolint:errcheck // nothing of it is wanted any more
	stop := context.AfterFunc(c.ctx, func() { _ = to.Close() })
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		copyFromCaller(to, &frameReader{from: c})
	}()
	_, _ = io.Copy(&frame.Writer{To: c, Kind: kindStdout}, to)
	_, _ = c.Write(frame.Append(nil, kindCloseWrite))
	<-done
}

// copyFromCaller copies what the caller sends. A caller may end its direction and continue to read. A caller
// that has gone ends both directions.
func copyFromCaller(to net.Conn, from *frameReader) {
	_, err := io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		err = half.CloseWrite()
	}
	if err != nil {
		_ = to.Close()
	}
}
