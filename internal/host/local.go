package host

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Local is the bare host on which Orrery runs.
type Local struct{ Name string }

var _ Runner = Local{}

// Run runs the command on the host.
func (l Local) Run(ctx context.Context, c Command) error {
	args := c.Args
	if c.User != "" && c.User != "root" {
		args = append([]string{"runuser", "-u", c.User, "--"}, args...)
	}
	return Exec(ctx, l.Name, args, c, nil)
}

// Put writes files of the host.
func (l Local) Put(_ context.Context, files ...File) error {
	for _, f := range files {
		if err := WriteFile(f); err != nil {
			return err
		}
	}
	return nil
}

// Dial connects from the host.
func (l Local) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, address)
}

// Path is where commands in nodes are looked for.
const Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Exec runs args on this machine with the streams and environment of c; the way into a node is part of args.
// Tune may change the command before it starts. The whole process group is killed when ctx ends.
func Exec(ctx context.Context, place string, args []string, c Command, tune func(*exec.Cmd)) error {
	tail := &Tail{}
	cmd := Program(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), c.Env...)
	run := func() error { return throughPipes(ctx, cmd, c, tail, tune) }
	if c.TTY {
		run = func() error { return onTerminal(cmd, c.Terminal, tune) }
	}
	began := time.Now()
	err := run()
	trace(ctx, place, args, began, err)
	if err == nil {
		return nil
	}
	status := -1
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status = exit.ExitCode()
	}
	if ctx.Err() != nil { // how it ended is how it was ended
		err, status = context.Cause(ctx), -1
	}
	return &RunError{Place: place, Command: c.Args, Status: status, Output: tail.String(), Err: err}
}

// throughPipes runs a command to its end; what it prints goes where c says, and the end of it is kept.
func throughPipes(ctx context.Context, cmd *exec.Cmd, c Command, tail *Tail, tune func(*exec.Cmd)) error {
	// A command does not outlive us either: the next run must not find the steps of this one still at work. The death signal is
	// tied to the thread that starts the command, which therefore stays until the command has ended.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	outlets, err := openOutlets(cmd, c, tail)
	if err != nil {
		return err
	}
	feed, err := feeder(cmd, c.Stdin)
	if err != nil {
		outlets.close()
		return err
	}
	if tune != nil {
		tune(cmd)
	}
	if err := cmd.Start(); err != nil {
		outlets.close()
		return err
	}
	outlets.begin()
	fed := feed()
	err = cmd.Wait()
	printed := outlets.end(ctx)
	switch {
	case err != nil:
		return err
	case printed != nil:
		return printed
	}
	return fed()
}

// feeder connects the input of a command. A regular file and a pipe are handed over, but nothing else: what could type at a terminal, or go from a directory to
// others, is in a node.
func feeder(cmd *exec.Cmd, from io.Reader) (begin func() (end func() error), err error) {
	nothing := func() func() error { return func() error { return nil } }
	if from == nil || isFlat(from) {
		cmd.Stdin = from
		return nothing, nil
	}
	to, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return func() func() error {
		read := make(chan error, 1)
		go func() {
			err := pour(to, from)
			if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
				err = nil // the command wants no more
			}
			read <- err
			to.Close() //nolint:errcheck // there is nothing in it to be lost
		}()
		return func() error {
			select {
			case err := <-read:
				return err
			default: // nobody waits for input that the command did not wait for
				return nil
			}
		}
	}, nil
}

// isFlat reports whether a stream is a file or a pipe: whoever holds it has what is in it and nothing else.
func isFlat(stream io.Reader) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeType&^os.ModeNamedPipe == 0
}
