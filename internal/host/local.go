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

// Exec runs args on this machine with the streams and environment of c, from the calling thread.
// Tune may change the command before it starts. The whole process group is killed when ctx ends.
func Exec(ctx context.Context, place string, args []string, c Command, tune func(*exec.Cmd)) error {
	// A command does not outlive this process: the next run must not find the steps of this one still
	// at work. The death signal is tied to the thread that starts the command, which therefore stays
	// until the command has ended.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return RunOn(ctx, place, args, c, func(streams Streams) (Underway, error) {
		cmd := Program(ctx, args[0], args[1:]...)
		cmd.Env = append(os.Environ(), c.Env...)
		streams.connect(cmd)
		if !streams.Terminal { // one on a terminal ends with the terminal
			cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
		}
		if tune != nil {
			tune(cmd)
		}
		return local{cmd}, cmd.Start()
	})
}

// local is a command of this machine that is under way.
type local struct{ *exec.Cmd }

func (l local) Kill() error { return l.Cancel() }

// Streams are the standard streams of a command: open files, or nil for none. On a terminal, all
// three are that terminal, and the command leads a session of its own there.
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

// Underway is a command that has been started.
type Underway interface {
	// Wait waits until the command has ended, which it must when the context of its start ends. The error
	// of a command that did not succeed has the method ExitCode, as an *exec.ExitError has.
	Wait() error
	// Kill kills the command with all that it has started in its session.
	Kill() error
}

// RunOn runs a command with the streams of c at a place where start starts it. Args are what trace shows of it.
func RunOn(ctx context.Context, place string, args []string, c Command, start func(Streams) (Underway, error)) error {
	tail := &Tail{}
	began := time.Now()
	var err error
	if c.TTY {
		err = onTerminal(c, start)
	} else {
		err = throughPipes(ctx, c, tail, start)
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
	if ctx.Err() != nil { // how it ended is how it was ended
		err, status = context.Cause(ctx), -1
	}
	return &RunError{Place: place, Command: c.Args, Status: status, Output: tail.String(), Err: err}
}

// throughPipes runs a command to its end; what it prints goes where c says, and the end of it is kept.
func throughPipes(ctx context.Context, c Command, tail *Tail, start func(Streams) (Underway, error)) error {
	outlets, err := openOutlets(c, tail)
	if err != nil {
		return err
	}
	in, err := openFeed(c.Stdin)
	if err != nil {
		outlets.close()
		return err
	}
	command, err := start(Streams{In: in.theirs, Out: outlets.out, Err: outlets.errs})
	in.handedOver()
	if err != nil {
		in.close()
		outlets.close()
		return err
	}
	outlets.begin()
	fed := in.begin()
	err = command.Wait()
	printed := outlets.end(ctx)
	in.close()
	switch {
	case err != nil:
		return err
	case printed != nil:
		return printed
	}
	return fed()
}

// A feed connects the input of a command. A regular file and a pipe are handed over, but nothing
// else: what could type at a terminal, or lead from a directory to others, is not to be in a node.
type feed struct {
	from   io.Reader
	theirs *os.File // what the command reads, or nil
	ours   *os.File // what is written to for it, or nil
}

func openFeed(from io.Reader) (*feed, error) {
	if from == nil || isFlat(from) {
		file, _ := from.(*os.File)
		return &feed{theirs: file}, nil
	}
	theirs, ours, err := os.Pipe()
	return &feed{from, theirs, ours}, err
}

// handedOver closes the command's end of the pipe: the command has its own by now.
func (f *feed) handedOver() {
	if f.ours != nil {
		f.theirs.Close()
	}
}

// begin feeds the command. What it returns tells afterwards whether the input failed, as far as the
// command waited for it.
func (f *feed) begin() (fed func() error) {
	if f.ours == nil {
		return func() error { return nil }
	}
	read := make(chan error, 1)
	go func() {
		err := pour(f.ours, f.from)
		if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
			err = nil // the command wants no more
		}
		read <- err
		f.close()
	}()
	return func() error {
		select {
		case err := <-read:
			return err
		default: // nobody waits for input that the command did not wait for
			return nil
		}
	}
}

func (f *feed) close() {
	if f.ours != nil {
		f.ours.Close()
	}
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
