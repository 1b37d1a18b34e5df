package remote

import (
	"context"
	"errors"
	"io"
	"sync"
)

// Receive sends a file over there, from which a layer is built.
func (f *far) Receive(ctx context.Context, digest string, from io.Reader) error {
	sent := &source{from: from}
	err := receiveMethod.along(ctx, f, digest, sent)
	sent.mutex.Lock()
	defer sent.mutex.Unlock()
	if err != nil && sent.wrong != nil { // that is why the talk has ended
		return sent.wrong
	}
	return err
}

var receiveMethod = method[string, none]{
	name: "receive", traits: traits{long: true, abandoned: true, displayed: true},
	answer: func(ctx context.Context, c *received, digest string) (none, error) {
		return none{}, c.host().Receive(ctx, digest, c.parts())
	},
}

// A source is read while it is sent. Nothing comes back.
type source struct {
	from  io.Reader
	mutex sync.Mutex
	wrong error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.mutex.Lock()
		s.wrong = err
		s.mutex.Unlock()
	}
	return n, err
}

func (s *source) Write(p []byte) (int, error) { return len(p), nil }
