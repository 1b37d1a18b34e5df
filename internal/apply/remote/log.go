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
	return logMethod.stream(ctx, f.far, node)
}

var logMethod = method[string, none]{
	name: "log", traits: traits{long: true, abandoned: true},
	answer: func(ctx context.Context, c *received, node string) (none, error) {
		log, err := c.host().Nodes.Log(ctx, node)
		if err != nil {
			return none{}, err
		}
		return none{}, c.send(log)
	},
}

// stream starts a call whose result arrives in pieces.
func (m *method[Q, A]) stream(ctx context.Context, f *far, ask Q) (*log, error) {
	t, err := m.begin(ctx, f.Link, f.at, ask)
	if err != nil {
		return nil, err
	}
	l := &log{far: f, talk: t, ctx: ctx}
	if err := l.more(); err != nil && !errors.Is(err, io.EOF) {
		t.Close()
		return nil, err
	}
	return l, nil
}

// A log is a reader of a result that arrives in pieces.
type log struct {
	far    *far
	talk   *talk
	ctx    context.Context // the log ends with it
	piece  []byte
	ended  error
	result json.RawMessage // the result after the last piece
}

func (l *log) Read(p []byte) (int, error) {
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
func (l *log) more() error {
	if l.ended != nil {
		return l.ended
	}
	w, err := l.talk.hearOne(l.ctx)
	if err != nil {
		l.ended = err
		return err
	}
	switch {
	case w.Fault != nil:
		l.ended = l.far.there(w.Fault.err())
	case w.Result != nil:
		l.ended, l.result = io.EOF, w.Result
	}
	l.piece = w.Bytes
	return l.ended
}

// Close closes the log.
func (l *log) Close() error {
	if l.ended == nil {
		l.ended = fs.ErrClosed
	}
	l.talk.Close()
	return nil
}
