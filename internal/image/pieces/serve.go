package pieces

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"orrery/internal/jsonlimit"
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

// What an answer begins with; then comes how long it is.
const (
	have   = 'y'
	excuse = 'n'
)

// Serve answers along a connection until the other end closes it.
func Serve(ctx context.Context, from Holder, c io.ReadWriter) error {
	out := bufio.NewWriterSize(c, 256<<10)
	for {
		var length [4]byte
		if _, err := io.ReadFull(c, length[:]); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		}
		if n := binary.BigEndian.Uint32(length[:]); n > mostAsked {
			return fmt.Errorf("a question of %d bytes: %w", n, tree.ErrTooLarge)
		}
		text := make([]byte, binary.BigEndian.Uint32(length[:]))
		if _, err := io.ReadFull(c, text); err != nil {
			return err
		}
		var q question
		if err := jsonlimit.Unmarshal(text, &q); err != nil {
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
	kind := byte(have)
	if why != nil {
		kind, content = excuse, []byte(why.Error())
		content = content[:min(len(content), mostExcuse)]
	}
	head := binary.BigEndian.AppendUint64([]byte{kind}, uint64(len(content)))
	if _, err := out.Write(head); err != nil {
		return err
	}
	_, err := out.Write(content)
	return err
}

// ask sends a question.
func ask(c io.Writer, q question) error {
	text, err := json.Marshal(q)
	if err != nil {
		return err
	}
	_, err = c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
	return err
}

// errNone is of hosts that have not got what they were asked for.
var errNone = errors.New("it has not got it")

// hear reads an answer of at most so many bytes.
func hear(from io.Reader, most int64) ([]byte, error) {
	var head [9]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint64(head[1:])
	switch {
	case head[0] == excuse && length <= mostExcuse:
	case head[0] != have:
		return nil, errors.New("it answers what is no answer")
	case length > uint64(most):
		return nil, fmt.Errorf("%w: it sends %d bytes, and %d were asked for", ErrLie, length, most)
	}
	content, err := io.ReadAll(io.LimitReader(from, int64(length))) // so that nothing is set aside for what never comes
	if err == nil && uint64(len(content)) < length {
		err = io.ErrUnexpectedEOF
	}
	if err == nil && head[0] == excuse {
		err = fmt.Errorf("%w: %s", errNone, tree.Shorten(string(content)))
	}
	return content, err
}

// ErrLie is the cause of an error about a host that gives something else than it should.
var ErrLie = errors.New("it is not what was asked for")
