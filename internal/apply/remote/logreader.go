package remote

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
)

// Log opens the output of the roles of a node.
func (f nodeHost) Log(ctx context.Context, node string) (io.ReadCloser, error) {
	return logMethod.stream(ctx, f.remoteHost, node)
}

var logMethod = method[string, none]{
	name: "log", callOptions: callOptions{long: true, abandoned: true},
	answer: func(ctx context.Context, c *serverCall, node string) (none, error) {
		log, err := c.host().Nodes.Log(ctx, node)
		if err != nil {
			return none{}, err
		}
		return none{}, c.send(log)
	},
}

// stream starts a call whose result arrives in pieces.
func (m *method[Q, A]) stream(ctx context.Context, f *remoteHost, ask Q) (*logReader, error) {
	t, err := m.begin(ctx, f.Link, f.at, ask)
	if err != nil {
		return nil, err
	}
	l := &logReader{host: f, talk: t, ctx: ctx}
	if err := l.more(); err != nil && !errors.Is(err, io.EOF) {
		t.Close()
		return nil, err
	}
	return l, nil
}

// A logReader is a reader of a result that arrives in pieces.
type logReader struct {
	host   *remoteHost
	talk   *clientCall
	ctx    context.Context // the log ends with it
	piece  []byte
	ended  error
	result json.RawMessage // the result after the last piece
}

func (l *logReader) Read(p []byte) (int, error) {
	for len(l.piece) == 0 {
		if err := l.more(); err != nil {
			return 0, err
		}
	}
	n := copy(p, l.piece)
	l.piece = l.piece[n:]
	return n, nil
}

// more waits for the next piece.
func (l *logReader) more() error {
	if l.ended != nil {
		return l.ended
	}
	w, err := l.talk.recvOne(l.ctx)
	if err != nil {
		l.ended = err
		return err
	}
	switch {
	case w.Fault != nil:
		l.ended = l.host.withHostName(w.Fault.toError())
	case w.Result != nil:
		l.ended, l.result = io.EOF, w.Result
	}
	l.piece = w.Bytes
	return l.ended
}

// Close closes the log.
func (l *logReader) Close() error {
	if l.ended == nil {
		l.ended = fs.ErrClosed
	}
	l.talk.Close()
	return nil
}
