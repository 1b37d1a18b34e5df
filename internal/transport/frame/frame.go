// Package frame splits a stream of bytes into frames: a kind, a length and content. Hosts, guests
// and helpers exchange all their messages in frames. Packages that use frames define what the kinds
// mean.
//
// The peer is not trusted. A frame that is longer than its reader allows is rejected. A frame takes
// no memory before its bytes have arrived.
package frame

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"orrery/internal/strict/jsonlimit"
)

const headBytes = 5

// ErrProtocol is the error for a peer that violates the protocol.
var ErrProtocol = errors.New("the peer violated the protocol")

// Append appends a frame whose content is the concatenation of parts.
func Append(to []byte, kind byte, parts ...[]byte) []byte {
	head := makeHead(kind, parts)
	to = append(to, head[:]...)
	for _, p := range parts {
		to = append(to, p...)
	}
	return to
}

func makeHead(kind byte, parts [][]byte) (head [headBytes]byte) {
	size := uint64(0)
	for _, p := range parts {
		size += uint64(len(p))
	}
	if size > math.MaxUint32 { // no reader would accept it
		panic("a frame of more than 4 GiB")
	}
	head[0] = kind
	binary.BigEndian.PutUint32(head[1:], uint32(size))
	return head
}

// Write writes a frame in a single call, so that other goroutines may write to the same stream.
func Write(to io.Writer, kind byte, content []byte) error {
	_, err := to.Write(Append(make([]byte, 0, headBytes+len(content)), kind, content))
	return err
}

// Put writes a frame without copying its parts.
func Put(to *bufio.Writer, kind byte, parts ...[]byte) error {
	head := makeHead(kind, parts)
	_, err := to.Write(head[:])
	for _, p := range parts {
		if err == nil {
			_, err = to.Write(p)
		}
	}
	return err
}

// WriteJSON writes a frame whose content is a value as JSON.
func WriteJSON(to io.Writer, kind byte, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return Write(to, kind, text)
}

// ReadHead reads the kind and the length of the next frame. It returns io.EOF if the stream ends before it.
func ReadHead(from io.Reader) (kind byte, size uint32, err error) {
	var head [headBytes]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return 0, 0, err
	}
	return head[0], binary.BigEndian.Uint32(head[1:]), nil
}

// ReadBody reads the content of a frame, into buffer if it fits.
func ReadBody(from io.Reader, size uint32, buffer []byte) ([]byte, error) {
	if int64(size) <= int64(len(buffer)) {
		n, err := io.ReadFull(from, buffer[:size])
		return buffer[:n], Unexpected(err)
	}
	content, err := io.ReadAll(io.LimitReader(from, int64(size))) // allocates only as bytes arrive
	if err == nil && int64(len(content)) < int64(size) {
		err = io.ErrUnexpectedEOF
	}
	return content, err
}

// Read reads a frame of at most maxBytes, into buffer if it fits.
func Read(from io.Reader, maxBytes int, buffer []byte) (kind byte, content []byte, err error) {
	kind, size, err := ReadHead(from)
	if err != nil {
		return 0, nil, err
	}
	if int64(size) > int64(maxBytes) {
		return 0, nil, fmt.Errorf("%w: a frame %q of %d bytes", ErrProtocol, kind, size)
	}
	content, err = ReadBody(from, size, buffer)
	return kind, content, err
}

// ReadJSON reads a frame of the kind want whose content is a value as JSON.
func ReadJSON(from io.Reader, want byte, maxBytes int, into any) error {
	kind, text, err := Read(from, maxBytes, nil)
	if err != nil {
		return err
	}
	if kind != want {
		return fmt.Errorf("%w: a frame %q", ErrProtocol, kind)
	}
	return Decode(text, into)
}

// Decode decodes the content of a frame, which is a value as JSON.
func Decode(text []byte, into any) error {
	if err := jsonlimit.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return nil
}

// Unexpected returns io.ErrUnexpectedEOF if err is io.EOF, and other errors unchanged.
func Unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
