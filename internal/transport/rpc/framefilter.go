package rpc

import (
	"encoding/binary"
	"errors"
	"io"
)

// A frameFilter stands between a server and yamux and passes only answers. A server must not open streams
// or send pings, because each would take memory at the client and demand an answer.
type frameFilter struct {
	*records
	header [12]byte
	have   int
	body   uint32
}

// The header of yamux is version, type, flags (2 bytes), stream (4), length (4).
const (
	typeData   = 0
	typePing   = 2
	typeGoAway = 3
	flagSYN    = 1
)

var errUnsolicited = errors.New("it sent a request instead of an answer")

func (g *frameFilter) Read(p []byte) (int, error) {
	n, err := g.records.Read(p)
	if err == nil {
		err = g.check(p[:n])
	}
	if err != nil {
		return 0, err // do not pass on invalid frames
	}
	return n, nil
}

// check parses the headers of yamux frames.
func (g *frameFilter) check(p []byte) error {
	for len(p) > 0 {
		if g.body > 0 {
			n := min(uint32(len(p)), g.body)
			g.body -= n
			p = p[n:]
			continue
		}
		n := copy(g.header[g.have:], p)
		g.have += n
		p = p[n:]
		if g.have < len(g.header) {
			return nil
		}
		g.have = 0
		flags, length := binary.BigEndian.Uint16(g.header[2:]), binary.BigEndian.Uint32(g.header[8:])
		switch {
		case g.header[0] != 0 || g.header[1] > typeGoAway:
			return errFrame
		case flags&flagSYN != 0 || g.header[1] == typePing:
			return errUnsolicited
		case g.header[1] == typeData:
			g.body = length
		}
	}
	return nil
}

var _ io.ReadWriteCloser = (*frameFilter)(nil)
