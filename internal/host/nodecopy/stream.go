package nodecopy

import (
	"cmp"
	"errors"
	"io"
	"os"
	"sync"
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
	m := &mouth{PipeWriter: w, whole: make(chan *handing), pieces: make(chan struct{}), gone: make(chan struct{})}
	s := &stream{&ear{mouth: m, pieces: r}, sync.OnceFunc(func() {
		close(m.gone)
		r.CloseWithError(errTakenNoMore)
	}), make(chan error, 1)}
	go func() {
		err := write(m)
		s.wrote <- err // before the reader can know of it
		m.begin()
		w.CloseWithError(err)
	}()
	return s, nil
}

// A mouth is where a stream is written: in pieces, or (host.Taker) all of it by handing over where
// it comes from.
type mouth struct {
	*io.PipeWriter
	whole  chan *handing
	once   sync.Once
	pieces chan struct{} // closed when the first comes
	gone   chan struct{} // closed when nobody reads any more
}

// A handing is what is read by somebody else, who says when that is done.
type handing struct {
	io.Reader
	done chan error
}

func (m *mouth) begin() { m.once.Do(func() { close(m.pieces) }) }

func (m *mouth) Write(p []byte) (int, error) {
	m.begin()
	return m.PipeWriter.Write(p)
}

// TakeFrom returns when all has been read, or nobody reads any more.
func (m *mouth) TakeFrom(from io.Reader) error {
	h := &handing{from, make(chan error, 1)}
	select {
	case m.whole <- h:
	case <-m.gone:
		return errTakenNoMore
	}
	select {
	case err := <-h.done:
		return err
	case <-m.gone:
		return errTakenNoMore
	}
}

// An ear is where a stream is read. What was handed over ends when whoever handed it over says how it ended.
type ear struct {
	mouth  *mouth
	handed *handing
	told   bool // that it comes in pieces, or that there is nothing more but its end
	pieces *io.PipeReader
}

func (e *ear) Read(p []byte) (int, error) {
	if e.handed == nil && !e.told {
		select {
		case e.handed = <-e.mouth.whole:
		case <-e.mouth.pieces:
			e.told = true
		}
	}
	if e.handed != nil {
		n, err := e.handed.Read(p)
		if n > 0 || err == nil {
			return n, nil // an error comes again
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		e.handed.done <- err
		e.handed, e.told = nil, true
	}
	return e.pieces.Read(p)
}

// SyscallConn returns the pipe that was handed over, once something has been read of it.
func (e *ear) SyscallConn() (syscall.RawConn, error) {
	if e.handed != nil {
		if pipe, ok := e.handed.Reader.(syscall.Conn); ok {
			return pipe.SyscallConn()
		}
	}
	return nil, errors.ErrUnsupported
}

// intoNode begins to write a stream that a program in a node reads: a pipe of the kernel's, which
// that program is given as it is. One that ends too early is known by what it lacks (seal).
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

// end returns why a copy failed, or nil if it did not. If both ends fail, the first to fail is the cause.
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
