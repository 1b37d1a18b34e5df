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

// A stream connects the writer and the reader of a copy.
type stream struct {
	io.Reader
	stop  func() // stops reading
	wrote chan error
}

// through starts to write a stream that this process reads. If the writer fails, the reader gets
// its error.
func through(write func(io.Writer) error) (*stream, error) {
	r, w := io.Pipe()
	m := &mouth{PipeWriter: w, whole: make(chan *handing), pieces: make(chan struct{}), gone: make(chan struct{})}
	s := &stream{&ear{mouth: m, pieces: r}, sync.OnceFunc(func() {
		close(m.gone)
		r.CloseWithError(errTakenNoMore)
	}), make(chan error, 1)}
	go func() {
		err := write(m)
		s.wrote <- err // before the reader sees the end
		m.begin()
		w.CloseWithError(err)
	}()
	return s, nil
}

// A mouth is the writing end of a stream. It is written in pieces or, as a host.Taker, passes its
// source to the reader.
type mouth struct {
	*io.PipeWriter
	whole  chan *handing
	once   sync.Once
	pieces chan struct{} // closed when the first piece is written
	gone   chan struct{} // closed when the reader has stopped
}

// A handing is a source that the other end reads. The reader sends the result to done.
type handing struct {
	io.Reader
	done chan error
}

func (m *mouth) begin() { m.once.Do(func() { close(m.pieces) }) }

func (m *mouth) Write(p []byte) (int, error) {
	m.begin()
	return m.PipeWriter.Write(p)
}

// TakeFrom returns when the source has been read, or the reader has stopped.
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

// An ear is the reading end of a stream. After a source that was handed over, it returns the
// writer's result.
type ear struct {
	mouth  *mouth
	handed *handing
	told   bool // the stream comes in pieces, or only its end remains
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
			return n, nil // the next Read returns the error
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		e.handed.done <- err
		e.handed, e.told = nil, true
	}
	return e.pieces.Read(p)
}

// SyscallConn returns the pipe that was handed over, after something has been read from it.
func (e *ear) SyscallConn() (syscall.RawConn, error) {
	if e.handed != nil {
		if pipe, ok := e.handed.Reader.(syscall.Conn); ok {
			return pipe.SyscallConn()
		}
	}
	return nil, errors.ErrUnsupported
}

// intoNode starts to write a stream that a program in a node reads. It is a pipe of the kernel,
// which that program inherits. The program detects a stream that ends early by its missing seal.
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
		s.wrote <- err // before the reader sees the end
		w.Close()
	}()
	return s, nil
}

// end returns why a copy failed, or nil. If both ends fail, it returns the error of the one that
// failed first.
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
