package host

import (
	"context"
	"errors"
	"io"
	"os"
	"reflect"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// An outputPipe copies the output of a command to its writer.
//
// os/exec is not used for this, because a command may leave a daemon behind that holds the pipe
// open. A reader that waited for the end of the pipe would wait for the daemon. The package os/exec
// can close the pipe after a delay. But then it loses output of the command itself if the reader is
// slow, such as a pager. So an outlet reads the pipe for some time after the end of the command.
// After that, it reads what is in the pipe at that moment, at the reader's pace.
type outputPipe struct {
	from *os.File
	to   io.Writer
	done chan error
}

// outputPipes are the one or two outlets of a command, with the ends of the pipes that the command
// holds.
type outputPipes struct {
	ours      []*outputPipe
	theirs    []*os.File
	out, errs *os.File // both in theirs: the command's standard output and standard error
}

// openOutputPipes connects the outputs of a command. If both have the same destination, they share one
// pipe, so that lines keep their order.
func openOutputPipes(c Command, tail *TailBuffer) (*outputPipes, error) {
	all := &outputPipes{}
	open := func(to io.Writer) (*os.File, error) {
		from, theirs, err := os.Pipe()
		if err != nil {
			all.close()
			return nil, err
		}
		all.ours = append(all.ours, &outputPipe{from, to, make(chan error, 1)})
		all.theirs = append(all.theirs, theirs)
		return theirs, nil
	}
	var out, errs io.Writer = tail, tail
	switch {
	case c.Stdout != nil && c.Stderr == nil:
		out = c.Stdout // the caller reads it as data, so it is not part of an error message
	case c.Stdout != nil:
		out = io.MultiWriter(c.Stdout, tail)
	}
	if c.Stderr != nil {
		errs = io.MultiWriter(c.Stderr, tail)
	}
	theirs, err := open(out)
	if err != nil {
		return nil, err
	}
	all.out, all.errs = theirs, theirs
	if SameWriter(c.Stdout, c.Stderr) {
		return all, nil
	}
	all.errs, err = open(errs)
	return all, err
}

// SameWriter reports whether two outputs are the same writer, so that one pipe keeps the order of
// lines.
func SameWriter(a, b io.Writer) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

func (all *outputPipes) close() {
	for _, o := range all.ours {
		o.from.Close()
	}
	for _, f := range all.theirs {
		f.Close()
	}
}

// start starts to copy the output, after the command has been started.
func (all *outputPipes) start() {
	for _, f := range all.theirs {
		f.Close()
	}
	for _, o := range all.ours {
		go func() {
			defer o.from.Close()
			o.done <- o.copyOutput()
		}()
	}
}

// An OutputReader reads the output of a command directly from its source, instead of being a writer that
// gets it in pieces. This saves one copy.
type OutputReader interface {
	ReadOutput(from io.Reader) error
}

func (o *outputPipe) copyOutput() error {
	from := &drainReader{from: o.from}
	if taker, ok := o.to.(OutputReader); ok {
		EnlargePipe(o.from)
		return taker.ReadOutput(from)
	}
	return copyStream(o.to, from)
}

// A drainReader reads the pipe of a command, which other processes may hold open forever. After its
// deadline it reads only what is in the pipe at that moment.
type drainReader struct {
	from *os.File
	over bool
	left int
}

func (r *drainReader) Read(p []byte) (int, error) {
	if !r.over {
		n, err := r.from.Read(p)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		if err := r.from.SetReadDeadline(time.Time{}); err != nil {
			return 0, err
		}
		if r.left, err = unix.IoctlGetInt(int(r.from.Fd()), unix.TIOCINQ); err != nil { // FIONREAD
			return 0, err
		}
		r.over = true
	}
	if r.left == 0 {
		return 0, io.EOF
	}
	n, err := r.from.Read(p[:min(len(p), r.left)])
	r.left -= n
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.EOF // ctx has ended
	}
	return n, err
}

// SyscallConn returns the raw pipe until the deadline, so that callers can widen it or splice from
// it. After the deadline, only Read knows where the output ends.
func (r *drainReader) SyscallConn() (syscall.RawConn, error) {
	if r.over {
		return nil, os.ErrDeadlineExceeded
	}
	return r.from.SyscallConn()
}

// wait waits until all output of the command has been written. When ctx has ended, it does not wait
// for a slow reader.
func (all *outputPipes) wait(ctx context.Context) error {
	var errs error
	for _, o := range all.ours {
		errs = errors.Join(errs, o.wait(ctx))
	}
	return errs
}

func (o *outputPipe) wait(ctx context.Context) error {
	_ = o.from.SetReadDeadline(time.Now().Add(outputGrace)) // ignore the error: the pipe is closed if all was read
	stop := context.AfterFunc(ctx, func() { _ = o.from.SetReadDeadline(time.Now()) })
	defer stop()
	select {
	case err := <-o.done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-o.done:
		return err
	case <-time.After(outputGrace):
		return nil
	}
}
