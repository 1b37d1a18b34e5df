package host

import (
	"errors"
	"io"
)

// A Source is the input of a command. It records the error if reading fails.
type Source struct {
	From io.Reader
	Err  error
}

func (s *Source) Read(p []byte) (int, error) {
	n, err := s.From.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.Err = err
	}
	return n, err
}
