package ferry

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"orrery/internal/backup/vault"
	"orrery/internal/strict/jsonlimit"
	"orrery/internal/transport/frame"
)

// The kinds of messages.
const (
	ofOrder   = 'o' // an Order
	ofTree    = 't' // a tree starts
	ofList    = 'l' // a part of its list
	ofEnd     = 'e' // the list ends
	ofStart   = 'g' // the host may start
	ofWanted  = 'w' // digests of wanted pieces
	ofBlock   = 'b' // a block of pieces
	ofPace    = 'p' // progress of a host, and the permission to go on
	ofNodes   = 'n' // records
	ofLayers  = 'y' // layers that a host has, and those that it must send
	ofSecrets = 's'
	ofDone    = 'd'
)

// maxBytesOf returns the maximum size of a message of a kind.
func maxBytesOf(kind byte) int {
	switch kind {
	case ofNodes, ofOrder:
		return vault.MaxManifestBytes
	case ofParcel, ofEntry:
		return vault.MaxParcelBytes
	case ofBlock:
		return vault.MaxSentBytes
	case ofList, ofPiece, ofLayers, ofWanted:
		return vault.PieceSize
	case ofSecrets:
		return 16 << 20
	}
	return 64 << 10
}

// A line sends and receives messages. Several goroutines may send.
type line struct {
	from  *bufio.Reader
	mutex sync.Mutex
	to    *bufio.Writer
}

func newLine(way io.ReadWriter) *line {
	return &line{from: bufio.NewReaderSize(way, 64<<10), to: bufio.NewWriterSize(way, 64<<10)}
}

// say sends a message.
func (l *line) say(kind byte, content []byte) error {
	if err := l.put(kind, content); err != nil {
		return err
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.to.Flush()
}

// put buffers a message until the next call of say.
func (l *line) put(kind byte, content []byte) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return frame.Put(l.to, kind, content)
}

// tell sends a value as JSON.
func (l *line) tell(kind byte, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return l.say(kind, text)
}

// errStrange is the error for an unexpected message.
var errStrange = errors.New("this is no part of a backup")

// hear returns the next message.
func (l *line) hear() (kind byte, content []byte, err error) {
	kind, size, err := frame.ReadHead(l.from)
	if err == nil && int64(size) > int64(maxBytesOf(kind)) {
		err = fmt.Errorf("a message %q of %d bytes: %w", kind, size, vault.ErrBounds)
	}
	if err == nil {
		content, err = frame.ReadBody(l.from, size, nil)
	}
	return kind, content, frame.Unexpected(err)
}

// hearOf receives a value in a message of the given kind.
func (l *line) hearOf(kind byte, into any) error {
	got, content, err := l.hear()
	if err != nil {
		return err
	}
	if got != kind {
		return errStrange
	}
	return jsonlimit.Unmarshal(content, into)
}

// list sends a list.
func (l *line) list(entries []vault.Entry) error {
	text, err := vault.WriteList(entries)
	for err == nil && len(text) > 0 {
		n := min(len(text), vault.PieceSize)
		err = l.say(ofList, text[:n])
		text = text[n:]
	}
	if err == nil {
		err = l.say(ofEnd, nil)
	}
	return err
}

// hearList passes the entries of a list to visit as they arrive.
func (l *line) hearList(visit func(*vault.Entry) error) error {
	text, in := io.Pipe()
	read := make(chan error, 1)
	go func() {
		err := vault.EachEntry(text, visit)
		text.CloseWithError(err) //nolint:errcheck // it gives none
		read <- err
	}()
	err := l.parts(in)
	in.CloseWithError(err) //nolint:errcheck // it gives none
	if wrong := <-read; wrong != nil {
		return wrong
	}
	return err
}

// parts copies the parts of a list to a writer.
func (l *line) parts(to io.Writer) error {
	for {
		kind, content, err := l.hear()
		if err != nil {
			return err
		}
		if kind == ofEnd {
			return nil
		}
		if kind != ofList {
			return errStrange
		}
		if _, err := to.Write(content); err != nil {
			return err
		}
	}
}
