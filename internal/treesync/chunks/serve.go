package chunks

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"orrery/internal/transport/frame"
	"orrery/internal/tree"
)

// A Piece is a piece of a file, named by the digest of the file and the piece's number.
type Piece struct {
	Sum string `json:"sum"`
	N   int    `json:"n,omitempty"`
}

// A Provider has the pieces of a tree, or will have them soon.
type Provider interface {
	// Index returns the packed index.
	Index(ctx context.Context) ([]byte, error)
	// Piece returns the content of a piece.
	Piece(ctx context.Context, p Piece) ([]byte, error)
}

// fetchRequest is a request for the index or for some pieces.
type fetchRequest struct {
	Index  bool    `json:"index,omitempty"`
	Pieces []Piece `json:"pieces,omitempty"`
}

// Limits of requests and answers.
const (
	maxRequestBytes = 1 << 20 // bytes of a request
	maxPieces       = 4096    // pieces in a request
	maxErrorBytes   = 1000    // bytes of an error
)

// Kinds of frames.
const (
	kindRequest byte = 'q' // a request
	kindContent byte = 'y' // an answer
	kindError   byte = 'n' // the error in place of an answer
)

// Serve answers requests until the peer closes the connection.
func Serve(ctx context.Context, from Provider, c io.ReadWriter) error {
	out := bufio.NewWriterSize(c, 256<<10)
	for {
		var q fetchRequest
		if err := frame.ReadJSON(c, kindRequest, maxRequestBytes, &q); errors.Is(err, io.EOF) {
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

func (q *fetchRequest) answer(ctx context.Context, from Provider, out *bufio.Writer) error {
	if len(q.Pieces) > maxPieces {
		return fmt.Errorf("%d pieces in one request: %w", len(q.Pieces), tree.ErrTooLarge)
	}
	if q.Index {
		text, err := from.Index(ctx)
		if err := writeAnswer(out, text, err); err != nil {
			return err
		}
	}
	for _, p := range q.Pieces {
		content, err := from.Piece(ctx, p)
		if err := writeAnswer(out, content, err); err != nil {
			return err
		}
	}
	return nil
}

// writeAnswer writes content, or the error in its place.
func writeAnswer(out *bufio.Writer, content []byte, why error) error {
	kind := kindContent
	if why != nil {
		kind, content = kindError, []byte(why.Error())
		content = content[:min(len(content), maxErrorBytes)]
	}
	return frame.Put(out, kind, content)
}

// request sends a request.
func request(c io.Writer, q fetchRequest) error { return frame.WriteJSON(c, kindRequest, q) }

// errMissing is the error of a host that does not have what was requested.
var errMissing = errors.New("it does not have it")

// readAnswer reads an answer of at most most bytes.
func readAnswer(from io.Reader, most int64) ([]byte, error) {
	kind, size, err := frame.ReadHead(from)
	switch {
	case err != nil:
		return nil, err
	case kind == kindError && size <= maxErrorBytes:
	case kind != kindContent:
		return nil, errors.New("it sent an invalid answer")
	case int64(size) > most:
		return nil, fmt.Errorf("%w: it sent %d bytes instead of %d", ErrCorrupt, size, most)
	}
	content, err := frame.ReadBody(from, size, nil)
	if err == nil && kind == kindError {
		err = fmt.Errorf("%w: %s", errMissing, tree.DisplayPath(string(content)))
	}
	return content, err
}

// ErrCorrupt is the cause of an error about a host that sends wrong data.
var ErrCorrupt = errors.New("it is not what was requested")
