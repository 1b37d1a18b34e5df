package remote

import (
	"context"
	"errors"
	"io"
	"sync"
)

// Receive sends a file over there, from which a layer is built.
func (f *far) Receive(ctx context.Context, digest string, from io.Reader) error {
	q := f.q()
	q.Content = digest
	is := &source{from: from}
	err := f.along(ctx, toReceive, q, is)
	is.mutex.Lock()
	defer is.mutex.Unlock()
	if err != nil && is.wrong != nil { // that is why the talk has ended
		return is.wrong
	}
	return err
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
