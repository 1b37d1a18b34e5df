package cli

import (
	"cmp"
	"errors"
	"io"
	"os"
	"syscall"

	"orrery/internal/host"
)

// A stream is what one end of a copy writes and the other reads.
type stream struct {
	io.Reader
	stop  func() // nothing more of it is taken
	wrote chan error
}

// through begins to write a stream that is read here. The reader is told why it ends too early.
func through(write func(io.Writer) error) (*stream, error) {
	r, w := io.Pipe()
	s := &stream{r, func() { r.CloseWithError(errTakenNoMore) }, make(chan error, 1)}
	go func() {
		err := write(w)
		s.wrote <- err // before the reader can know of it
		w.CloseWithError(err)
	}()
	return s, nil
}

// intoNode begins to write a stream that a program in a node reads: a pipe of the kernel's, which that program is given as it is. One that ends too early is
// known by what it lacks (seal).
func intoNode(write func(io.Writer) error) (*stream, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	host.Widen(w)
	s := &stream{r, func() { r.Close() }, make(chan error, 1)}
	go func() {
		err := write(w)
		if errors.Is(err, syscall.EPIPE) {
			err = errTakenNoMore
		}
		s.wrote <- err // before the reader can know of it
		w.Close()
	}()
	return s, nil
}

// end gives why a copy failed, or what is to be said of one that did not: of two ends that fail, the first is the cause.
func (s *stream) end(read error) error {
	defer s.stop()
	if read != nil {
		select {
		case wrote := <-s.wrote:
			return cmp.Or(wrote, read)
		default:
			return read
		}
	}
	s.stop()
	if wrote := <-s.wrote; !errors.Is(wrote, errTakenNoMore) {
		return wrote
	}
	return nil
}

var errTakenNoMore = errors.New("nothing more of it is taken")
