package chunks

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"orrery/internal/frame"
	"orrery/internal/tree"
)

// A Piece is a part of a file with some content.
type Piece struct {
	Sum string `json:"sum"`
	N   int    `json:"n,omitempty"`
}

// A Holder has pieces of a layer, or will have them soon.
type Holder interface {
	// Index gives the index as it travels.
	Index(ctx context.Context) ([]byte, error)
	// Piece gives what is in one.
	Piece(ctx context.Context, p Piece) ([]byte, error)
}

// question is what a host that takes asks: for the index, or for some pieces.
type question struct {
	Index  bool    `json:"index,omitempty"`
	Pieces []Piece `json:"pieces,omitempty"`
}

// Bounds of what is said on the way.
const (
	mostAsked  = 1 << 20 // bytes of a question
	mostPieces = 4096    // in one
	mostExcuse = 1000    // bytes of why there is no answer
)

// Kinds of frames.
const (
	wanted byte = 'q' // a question
	have   byte = 'y' // an answer
	excuse byte = 'n' // why there is none
)

// Serve answers along a connection until the other end closes it.
func Serve(ctx context.Context, from Holder, c io.ReadWriter) error {
	out := bufio.NewWriterSize(c, 256<<10)
	for {
		var q question
		if err := frame.ReadJSON(c, wanted, mostAsked, &q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := q.answer(ctx, from, out); err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
}

func (q *question) answer(ctx context.Context, from Holder, out *bufio.Writer) error {
	if len(q.Pieces) > mostPieces {
		return fmt.Errorf("%d pieces at once: %w", len(q.Pieces), tree.ErrTooLarge)
	}
	if q.Index {
		text, err := from.Index(ctx)
		if err := say(out, text, err); err != nil {
			return err
		}
	}
	for _, p := range q.Pieces {
		content, err := from.Piece(ctx, p)
		if err := say(out, content, err); err != nil {
			return err
		}
	}
	return nil
}

// say writes an answer, or why there is none.
func say(out *bufio.Writer, content []byte, why error) error {
	kind := have
	if why != nil {
		kind, content = excuse, []byte(why.Error())
		content = content[:min(len(content), mostExcuse)]
	}
	return frame.Put(out, kind, content)
}

// ask sends a question.
func ask(c io.Writer, q question) error { return frame.WriteJSON(c, wanted, q) }

// errNone is of hosts that have not got what they were asked for.
var errNone = errors.New("it has not got it")

// hear reads an answer of at most so many bytes.
func hear(from io.Reader, most int64) ([]byte, error) {
	kind, size, err := frame.ReadHead(from)
	switch {
	case err != nil:
		return nil, err
	case kind == excuse && size <= mostExcuse:
	case kind != have:
		return nil, errors.New("it answers what is no answer")
	case int64(size) > most:
		return nil, fmt.Errorf("%w: it sends %d bytes, and %d were asked for", ErrLie, size, most)
	}
	content, err := frame.ReadBody(from, size, nil)
	if err == nil && kind == excuse {
		err = fmt.Errorf("%w: %s", errNone, tree.Shorten(string(content)))
	}
	return content, err
}

// ErrLie is the cause of an error about a host that gives something else than it should.
var ErrLie = errors.New("it is not what was asked for")
