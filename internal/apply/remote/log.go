package remote

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
)

// Log opens what the roles of a node printed.
func (f *far) Log(ctx context.Context, node string) (io.ReadCloser, error) {
	q := f.q()
	q.Log = node
	return f.stream(ctx, toShow, q)
}

// stream asks for what comes in pieces.
func (f *far) stream(ctx context.Context, about string, q question) (*log, error) {
	t, err := f.begin(ctx, about, q)
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

// A log comes in pieces.
type log struct {
	far    *far
	talk   *talk
	ctx    context.Context // with which it ends
	piece  []byte
	ended  error
	result json.RawMessage // that came after the last
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

// Close closes it.
func (l *log) Close() error {
	if l.ended == nil {
		l.ended = fs.ErrClosed
	}
	l.talk.Close()
	return nil
}
