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
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, tee(c.Stdout, tail), tee(c.Stderr, tail)
	if c.TTY {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	} else {
		// A command does not outlive us either: the next run must not find the steps of this one still at work. The death signal is
		// tied to the thread that starts the command, which therefore stays until the command has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	}
	if tune != nil {
		tune(cmd)
	}
	err := cmd.Run()
	if err == nil {
		return nil
	}
	status := -1
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status = exit.ExitCode()
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return &RunError{Place: place, Command: c.Args, Status: status, Output: tail.String(), Err: err}
}

func tee(to io.Writer, tail *Tail) io.Writer {
	if to == nil {
		return tail
	}
	return io.MultiWriter(to, tail)
}
