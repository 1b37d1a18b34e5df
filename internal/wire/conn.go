package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// A conn is a connection that the far end has made. Bytes are in frames, so that either direction can end before the other.
type conn struct {
	*call
	to *net.TCPAddr

	reading sync.Mutex
	header  [head]byte // of the frame at hand
	have    int
	left    uint32 // of its bytes
	ended   bool

	writing sync.Mutex
	mute    bool
}

var _ net.Conn = (*conn)(nil)

// Read may end in the middle of a frame, when its time is over, and goes on there.
func (c *conn) Read(p []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	for c.left == 0 && !c.ended {
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	if c.ended {
		return 0, io.EOF
	}
	n, err := c.Stream.Read(p[:min(uint32(len(p)), c.left)])
	c.left -= uint32(n)
	return n, err
}

// next reads the header of a frame.
func (c *conn) next() error {
	for c.have < head {
		n, err := c.Stream.Read(c.header[c.have:])
		c.have += n
		if err != nil {
			return err
		}
	}
	c.have = 0
	length := binary.BigEndian.Uint32(c.header[1:])
	switch k := kind(c.header[0]); {
	case k == out && length <= mostSaid:
		c.left = length
	case k == ending && length == 0:
		c.ended = true
	default:
		return c.c.lost(fmt.Errorf("%w: a frame %q of %d bytes", errFrame, k, length))
	}
	return nil
}

func (c *conn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.mute {
		return 0, net.ErrClosed
	}
	n, err := (&frames{to: c.Stream, kind: out}).Write(p)
	c.mute = err != nil // a frame may have been begun
	return n, err
}

// CloseWrite tells the other side that no more comes.
func (c *conn) CloseWrite() error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.mute {
		return net.ErrClosed
	}
	c.mute = true
	_, err := c.Stream.Write(frame(ending, nil))
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
