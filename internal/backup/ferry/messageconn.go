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
	msgRequest = 'o' // a Request
	msgTree    = 't' // a tree starts
	msgList    = 'l' // a part of its list
	msgEnd     = 'e' // the list ends
	msgStart   = 'g' // the host may start
	msgWanted  = 'w' // digests of wanted pieces
	msgBlock   = 'b' // a block of pieces
	msgStage   = 'p' // progress of a host, and the permission to go on
	msgNodes   = 'n' // records
	msgLayers  = 'y' // layers that a host has, and those that it must send
	msgSecrets = 's'
	msgDone    = 'd'
)

// maxBytesOf returns the maximum size of a message of a kind.
func maxBytesOf(kind byte) int {
	switch kind {
	case msgNodes, msgRequest:
		return vault.MaxManifestBytes
	case msgRestorePart, msgEntry:
		return vault.MaxMessageBytes
	case msgBlock:
		return vault.MaxSentBytes
	case msgList, msgPiece, msgLayers, msgWanted:
		return vault.PieceSize
	case msgSecrets:
		return 16 << 20
	}
	return 64 << 10
}

// A messageConn sends and receives messages. Several goroutines may send.
type messageConn struct {
	from  *bufio.Reader
	mutex sync.Mutex
	to    *bufio.Writer
}

func newMessageConn(way io.ReadWriter) *messageConn {
	return &messageConn{from: bufio.NewReaderSize(way, 64<<10), to: bufio.NewWriterSize(way, 64<<10)}
}

// sendMessage sends a message.
func (l *messageConn) sendMessage(kind byte, content []byte) error {
	if err := l.bufferMessage(kind, content); err != nil {
		return err
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.to.Flush()
}

// bufferMessage buffers a message until the next call of say.
func (l *messageConn) bufferMessage(kind byte, content []byte) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return frame.Put(l.to, kind, content)
}

// sendJSON sends a value as JSON.
func (l *messageConn) sendJSON(kind byte, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return l.sendMessage(kind, text)
}

// errUnexpected is the error for an unexpected message.
var errUnexpected = errors.New("unexpected message")

// recv returns the next message.
func (l *messageConn) recv() (kind byte, content []byte, err error) {
	kind, size, err := frame.ReadHead(l.from)
	if err == nil && int64(size) > int64(maxBytesOf(kind)) {
		err = fmt.Errorf("a message %q of %d bytes: %w", kind, size, vault.ErrBounds)
	}
	if err == nil {
		content, err = frame.ReadBody(l.from, size, nil)
	}
	return kind, content, frame.Unexpected(err)
}

// recvJSON receives a value in a message of the given kind.
func (l *messageConn) recvJSON(kind byte, into any) error {
	got, content, err := l.recv()
	if err != nil {
		return err
	}
	if got != kind {
		return errUnexpected
	}
	return jsonlimit.Unmarshal(content, into)
}

// sendList sends a list.
func (l *messageConn) sendList(entries []vault.Entry) error {
	text, err := vault.WriteList(entries)
	for err == nil && len(text) > 0 {
		n := min(len(text), vault.PieceSize)
		err = l.sendMessage(msgList, text[:n])
		text = text[n:]
	}
	if err == nil {
		err = l.sendMessage(msgEnd, nil)
	}
	return err
}

// recvList passes the entries of a list to visit as they arrive.
func (l *messageConn) recvList(visit func(*vault.Entry) error) error {
	text, in := io.Pipe()
	read := make(chan error, 1)
	go func() {
		err := vault.EachEntry(text, visit)
		text.CloseWithError(err) //nolint:errcheck // it gives none
		read <- err
	}()
	err := l.copyList(in)
	in.CloseWithError(err) //nolint:errcheck // it gives none
	if wrong := <-read; wrong != nil {
		return wrong
	}
	return err
}

// copyList copies the parts of a list to a writer.
func (l *messageConn) copyList(to io.Writer) error {
	for {
		kind, content, err := l.recv()
		if err != nil {
			return err
		}
		if kind == msgEnd {
			return nil
		}
		if kind != msgList {
			return errUnexpected
		}
		if _, err := to.Write(content); err != nil {
			return err
		}
	}
}
