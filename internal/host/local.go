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

// Put writes files on the host.
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

// Path is the search path of commands in nodes.
const Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Exec runs args on this machine with the streams and environment of c, from the calling thread.
// The function tune may change the command before it starts, or is nil. The whole process group is
// killed when ctx ends.
func Exec(ctx context.Context, place string, args []string, c Command, tune func(*exec.Cmd)) error {
	// A command must not outlive this process: otherwise the next run would find the steps of this
	// one still at work. The death signal is tied to the thread that starts the command, so the
	// thread stays until the command has ended.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return RunOn(ctx, place, args, c, func(streams Streams) (Process, error) {
		cmd := Program(ctx, args[0], args[1:]...)
		cmd.Env = append(os.Environ(), c.Env...)
		streams.connect(cmd)
		if !streams.Terminal { // a command on a terminal ends with the terminal
			cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
		}
		if tune != nil {
			tune(cmd)
		}
		return localProcess{cmd}, cmd.Start()
	})
}

// localProcess is a running command of this machine.
type localProcess struct{ *exec.Cmd }

func (l localProcess) Kill() error { return l.Cancel() }

// Streams are the standard streams of a command: open files, or nil for none. With Terminal, all
// three are the same terminal, and the command leads a session of its own there.
type Streams struct {
	In, Out, Err *os.File
	Terminal     bool
}

func (s Streams) connect(cmd *exec.Cmd) {
	if s.In != nil { // a nil *os.File in an interface is not nil
		cmd.Stdin = s.In
	}
	cmd.Stdout, cmd.Stderr = s.Out, s.Err
	cmd.SysProcAttr.Setctty = s.Terminal // of descriptor 0
}

// Process is a command that has been started.
type Process interface {
	// Wait waits until the command has ended. The command must end when the context of its start
	// ends. If the command does not succeed, the error has the method ExitCode, like
	// *exec.ExitError.
	Wait() error
	// Kill kills the command and all processes of its session.
	Kill() error
}

// RunOn runs a command with the streams of c at the place where start starts it. The arguments args
// are only for the trace.
func RunOn(ctx context.Context, place string, args []string, c Command, start func(Streams) (Process, error)) error {
	tail := &TailBuffer{}
	began := time.Now()
	var err error
	if c.TTY {
		err = runOnTerminal(c, start)
	} else {
		err = runThroughPipes(ctx, c, tail, start)
	}
	trace(ctx, place, args, began, err)
	if err == nil {
		return nil
	}
	status := -1
	var exit interface{ ExitCode() int }
	if errors.As(err, &exit) {
		status = exit.ExitCode()
	}
	if ctx.Err() != nil { // the error is the reason why ctx ended, not how the command was killed
		err, status = context.Cause(ctx), -1
	}
	return &RunError{Place: place, Command: c.Args, Status: status, Output: tail.String(), Err: err}
}

// runThroughPipes runs a command to its end. It sends the output where c says, and keeps the end of
// it.
func runThroughPipes(ctx context.Context, c Command, tail *TailBuffer, start func(Streams) (Process, error)) error {
	outlets, err := openOutputPipes(c, tail)
	if err != nil {
		return err
	}
	in, err := openInputFeed(c.Stdin)
	if err != nil {
		outlets.close()
		return err
	}
	command, err := start(Streams{In: in.theirs, Out: outlets.out, Err: outlets.errs})
	in.closeChildEnd()
	if err != nil {
		in.close()
		outlets.close()
		return err
	}
	outlets.start()
	fed := in.start()
	err = command.Wait()
	printed := outlets.wait(ctx)
	in.close()
	switch {
	case err != nil:
		return err
	case printed != nil:
		return printed
	}
	return fed()
}

// An inputFeed connects the input of a command. Only regular files and pipes are passed to the command
// directly. A node must not get a terminal at which it could type, or a directory that leads to
// others.
type inputFeed struct {
	from   io.Reader
	theirs *os.File // the end that the command reads, or nil
	ours   *os.File // the end that this program writes to, or nil
}

func openInputFeed(from io.Reader) (*inputFeed, error) {
	if from == nil || isFileOrPipe(from) {
		file, _ := from.(*os.File)
		return &inputFeed{theirs: file}, nil
	}
	theirs, ours, err := os.Pipe()
	return &inputFeed{from, theirs, ours}, err
}

// closeChildEnd closes the command's end of the pipe, after the command has started with a copy of it.
func (f *inputFeed) closeChildEnd() {
	if f.ours != nil {
		f.theirs.Close()
	}
}

// start starts to copy the input to the command. The function that it returns is called after the
// end of the command. It returns the error of the input, unless the input is still being copied.
func (f *inputFeed) start() (fed func() error) {
	if f.ours == nil {
		return func() error { return nil }
	}
	read := make(chan error, 1)
	go func() {
		err := copyStream(f.ours, f.from)
		if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
			err = nil // the command reads no more
		}
		read <- err
		f.close()
	}()
	return func() error {
		select {
		case err := <-read:
			return err
		default: // the command has ended without reading all input
			return nil
		}
	}
}

func (f *inputFeed) close() {
	if f.ours != nil {
		f.ours.Close()
	}
}

// isFileOrPipe reports whether a stream is a regular file or a pipe. Its holder can reach only its
// content.
func isFileOrPipe(stream io.Reader) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeType&^os.ModeNamedPipe == 0
}
