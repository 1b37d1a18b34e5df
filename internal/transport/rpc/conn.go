package rpc

import (
	"errors"
	"net"
	"sync"
	"time"

	"orrery/internal/transport/frame"
)

// A conn is a connection made at the other end. Its bytes are in frames, so that either direction
// can end before the other.
type conn struct {
	*call
	to *net.TCPAddr

	reading sync.Mutex
	from    frame.Reader

	writing sync.Mutex
	mute    bool
}

var _ net.Conn = (*conn)(nil)

// Read may stop in the middle of a frame at its deadline. The next Read continues there.
func (c *conn) Read(p []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	n, err := c.from.Read(p)
	if errors.Is(err, frame.ErrProtocol) {
		err = c.c.lost(err)
	}
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.mute {
		return 0, net.ErrClosed
	}
	n, err := (&frame.Writer{To: c.Stream, Kind: kindStdout}).Write(p)
	c.mute = err != nil // a frame may be incomplete
	return n, err
}

// CloseWrite tells the other side that no more bytes follow.
func (c *conn) CloseWrite() error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.mute {
		return net.ErrClosed
	}
	c.mute = true
	_, err := c.Stream.Write(frame.Append(nil, kindCloseWrite))
	return err
}

// Close ends the connection in both directions.
func (c *conn) Close() error {
	c.close()
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return &net.TCPAddr{} }
func (c *conn) RemoteAddr() net.Addr { return c.to }

func (c *conn) SetDeadline(at time.Time) error      { return c.Stream.SetDeadline(at) }
func (c *conn) SetReadDeadline(at time.Time) error  { return c.Stream.SetReadDeadline(at) }
func (c *conn) SetWriteDeadline(at time.Time) error { return c.Stream.SetWriteDeadline(at) }
