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

// newStream starts to write a stream that this process reads. If the writer fails, the reader gets
// its error.
func newStream(write func(io.Writer) error) (*stream, error) {
	r, w := io.Pipe()
	m := &pipeWriter{PipeWriter: w, whole: make(chan *handoff), pieces: make(chan struct{}), gone: make(chan struct{})}
	s := &stream{&pipeReader{writer: m, pieces: r}, sync.OnceFunc(func() {
		close(m.gone)
		r.CloseWithError(errReaderStopped)
	}), make(chan error, 1)}
	go func() {
		err := write(m)
		s.wrote <- err // before the reader sees the end
		m.startPieces()
		w.CloseWithError(err)
	}()
	return s, nil
}

// A pipeWriter is the writing end of a stream. It is written in pieces or, as a host.OutputReader, passes its
// source to the reader.
type pipeWriter struct {
	*io.PipeWriter
	whole  chan *handoff
	once   sync.Once
	pieces chan struct{} // closed when the first piece is written
	gone   chan struct{} // closed when the reader has stopped
}

// A handoff is a source that the other end reads. The reader sends the result to done.
type handoff struct {
	io.Reader
	done chan error
}

func (m *pipeWriter) startPieces() { m.once.Do(func() { close(m.pieces) }) }

func (m *pipeWriter) Write(p []byte) (int, error) {
	m.startPieces()
	return m.PipeWriter.Write(p)
}

// ReadOutput returns when the source has been read, or the reader has stopped.
func (m *pipeWriter) ReadOutput(from io.Reader) error {
	h := &handoff{from, make(chan error, 1)}
	select {
	case m.whole <- h:
	case <-m.gone:
		return errReaderStopped
	}
	select {
	case err := <-h.done:
		return err
	case <-m.gone:
		return errReaderStopped
	}
}

// A pipeReader is the reading end of a stream. After a source that was handed over, it returns the
// writer's result.
type pipeReader struct {
	writer *pipeWriter
	handed *handoff
	told   bool // the stream comes in pieces, or only its end remains
	pieces *io.PipeReader
}

func (e *pipeReader) Read(p []byte) (int, error) {
	if e.handed == nil && !e.told {
		select {
		case e.handed = <-e.writer.whole:
		case <-e.writer.pieces:
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
func (e *pipeReader) SyscallConn() (syscall.RawConn, error) {
	if e.handed != nil {
		if pipe, ok := e.handed.Reader.(syscall.Conn); ok {
			return pipe.SyscallConn()
		}
	}
	return nil, errors.ErrUnsupported
}

// newNodeStream starts to write a stream that a program in a node reads. It is a pipe of the kernel,
// which that program inherits. The program detects a stream that ends early by its missing seal.
func newNodeStream(write func(io.Writer) error) (*stream, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	host.EnlargePipe(w)
	s := &stream{r, func() { r.Close() }, make(chan error, 1)}
	go func() {
		err := write(w)
		if errors.Is(err, syscall.EPIPE) {
			err = errReaderStopped
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
	if wrote := <-s.wrote; !errors.Is(wrote, errReaderStopped) {
		return wrote
	}
	return nil
}

var errReaderStopped = errors.New("the receiver has stopped reading")
