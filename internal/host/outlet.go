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

// An outlet carries what a command prints to where it is wanted.
//
// It is here and not left to os/exec because of what a command may leave behind: a daemon that
// holds the pipe open. Whoever waited for the end of it would wait for the daemon; os/exec can be
// told to close the pipe after some time, but then what the command itself printed is lost if it is
// taken slowly, as by a pager. So the pipe is read for some time after the end of the command, and
// after that, at whatever pace, as much as is in it.
type outlet struct {
	from *os.File
	to   io.Writer
	done chan error
}

// outlets are the one or two outlets of a command, with the ends that it holds.
type outlets struct {
	ours      []*outlet
	theirs    []*os.File
	out, errs *os.File // of theirs, the command's standard output and standard error
}

// openOutlets connects the outputs of a command. Both go through one pipe if they go to one place,
// so that lines keep their order.
func openOutlets(c Command, tail *Tail) (*outlets, error) {
	all := &outlets{}
	open := func(to io.Writer) (*os.File, error) {
		from, theirs, err := os.Pipe()
		if err != nil {
			all.close()
			return nil, err
		}
		all.ours = append(all.ours, &outlet{from, to, make(chan error, 1)})
		all.theirs = append(all.theirs, theirs)
		return theirs, nil
	}
	var out, errs io.Writer = tail, tail
	switch {
	case c.Stdout != nil && c.Stderr == nil:
		out = c.Stdout // the caller wants it as data: it has no place in a message
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

// SameWriter reports whether two outputs are one, in which lines keep their order.
func SameWriter(a, b io.Writer) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

func (all *outlets) close() {
	for _, o := range all.ours {
		o.from.Close()
	}
	for _, f := range all.theirs {
		f.Close()
	}
}

// begin carries, once the command has been started.
func (all *outlets) begin() {
	for _, f := range all.theirs {
		f.Close()
	}
	for _, o := range all.ours {
		go func() {
			defer o.from.Close()
			o.done <- o.carry()
		}()
	}
}

// A Taker takes what a command prints from where that comes, instead of having it written to it in
// pieces: it is copied once less.
type Taker interface {
	TakeFrom(from io.Reader) error
}

func (o *outlet) carry() error {
	from := &remainder{from: o.from}
	if taker, ok := o.to.(Taker); ok {
		Widen(o.from)
		return taker.TakeFrom(from)
	}
	return pour(o.to, from)
}

// A remainder is what comes through the pipe of a command, which others may hold open for ever:
// once its time is over, as much as is in it then.
type remainder struct {
	from *os.File
	over bool
	left int
}

func (r *remainder) Read(p []byte) (int, error) {
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

// SyscallConn lets the pipe be widened, and spliced from until its time is over; after that, only reading ends.
func (r *remainder) SyscallConn() (syscall.RawConn, error) {
	if r.over {
		return nil, os.ErrDeadlineExceeded
	}
	return r.from.SyscallConn()
}

// end waits until all is where it is wanted that the command printed. When ctx has ended nobody
// waits for one who does not take it.
func (all *outlets) end(ctx context.Context) error {
	var errs error
	for _, o := range all.ours {
		errs = errors.Join(errs, o.end(ctx))
	}
	return errs
}

func (o *outlet) end(ctx context.Context) error {
	_ = o.from.SetReadDeadline(time.Now().Add(outputGrace)) // it is closed if all is done
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
