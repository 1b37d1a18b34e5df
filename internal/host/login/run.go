package login

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/text/shell"
)

// endGrace limits the wait for the end of a command that was killed, and for the output of a
// command that left a process behind.
const endGrace = 2 * time.Second

// Run runs a command on the machine.
func (c *Client) Run(ctx context.Context, cmd host.Command) error {
	if cmd.TTY {
		return host.RunWithRemoteTerminal(ctx, cmd, c.run)
	}
	return c.run(ctx, cmd, nil)
}

// run is Run, with a terminal if user is not nil.
func (c *Client) run(ctx context.Context, cmd host.Command, user *host.Terminal) error {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return &host.RunError{Place: c.door.Place, Command: cmd.Args, Status: -1, Err: context.Cause(ctx)}
	}
	s, err := c.openWhenAdmitted(ctx)
	if err != nil {
		return &host.RunError{Place: c.door.Place, Command: cmd.Args, Status: -1, Err: err}
	}
	defer c.close(s)
	if user != nil {
		if err := s.requestTerminal(user); err != nil {
			return &host.RunError{Place: c.door.Place, Command: cmd.Args, Status: -1, Err: err}
		}
		over := make(chan struct{})
		defer close(over)
		go s.followSize(user.Sizes, over)
	}
	if _, err := s.SendRequest("exec", false, ssh.Marshal(struct{ Command string }{c.commandLine(cmd)})); err != nil {
		return &host.RunError{Place: c.door.Place, Command: cmd.Args, Status: -1, Err: err}
	}
	e := &outputReader{c: cmd, tail: &host.TailBuffer{}}
	fed := s.feed(cmd)
	err = e.wait(ctx, c, s)
	switch {
	case ctx.Err() != nil:
		return &host.RunError{Place: c.door.Place, Command: cmd.Args, Status: -1, Output: e.tail.String(),
			Err: context.Cause(ctx)}
	case err != nil:
		return &host.RunError{Place: c.door.Place, Command: cmd.Args, Status: -1, Output: e.tail.String(), Err: err}
	case e.pid == 0 && !cmd.TTY:
		return c.startError(s, e.tail.String())
	}
	if err := s.err(); err != nil {
		return &host.RunError{Place: c.door.Place, Command: cmd.Args, Status: s.status, Output: e.tail.String(), Err: err}
	}
	if err := fed(); err != nil {
		return &host.RunError{Place: c.door.Place, Command: cmd.Args, Status: -1, Output: e.tail.String(), Err: err}
	}
	return nil
}

// close closes a session that has ended, and stores the time.
func (c *Client) close(s *session) {
	_ = s.Close()
	now := time.Now()
	c.ended.Store(&now)
}

// startError returns the reason why the machine did not start a command.
func (c *Client) startError(s *session, said string) error {
	p := problem.New(problem.Failed, "node %s: user %s cannot run commands", c.door.Place, c.door.User).
		Because(errors.Join(s.err(), errors.New(strings.TrimSpace(said))))
	if c.door.User != "root" && s.told {
		p = problem.New(problem.Failed, "node %s: user %s cannot become root without a password",
			c.door.Place, c.door.User).
			Because(errors.New(strings.TrimSpace(said))).
			Try(`write "%s ALL=(ALL) NOPASSWD:ALL" to a file in /etc/sudoers.d of the image, or set another login`, c.door.User)
	}
	return p
}

// commandLine returns the command line for the user's login shell. The command first prints its process
// id, by which kill can kill it.
func (c *Client) commandLine(cmd host.Command) string {
	script := "cd /; echo $$; exec \"$@\""
	if cmd.TTY {
		script = "cd /; exec \"$@\""
	} else {
		if cmd.Stdin == nil {
			script += " </dev/null"
		}
		if host.SameWriter(cmd.Stdout, cmd.Stderr) {
			script += " 2>&1"
		}
	}
	words := slices.Concat(c.asUser(cmd.User),
		[]string{"/bin/sh", "-c", script, "orrery", "env", "-i", "PATH=" + host.Path,
			"LANG=C.UTF-8", "HOME=/root"}, cmd.Env, cmd.Args)
	return "exec " + shell.Join(words)
}

// asUser returns the command that switches from the login user to another user, or nil.
func (c *Client) asUser(user string) []string {
	switch {
	case user == "":
		user = "root"
	case strings.HasPrefix(user, "-"):
		user = "./" + user // a name that no user has, and that is not an option
	}
	switch {
	case c.door.User == user:
		return nil
	case c.door.User != "root":
		return []string{"sudo", "-n", "-u", user, "--"}
	}
	return []string{"runuser", "-u", user, "--"}
}

// feed sends a command its input. The returned function does not wait for input that the command
// has not read.
func (s *session) feed(cmd host.Command) (end func() error) {
	if cmd.Stdin == nil {
		return func() error { return nil }
	}
	read := make(chan error, 1)
	go func() {
		source := &host.Source{From: cmd.Stdin}
		_, _ = io.Copy(s.Channel, source) // if sending fails, the command has ended, and its status says how
		read <- source.Err
		_ = s.CloseWrite()
	}()
	return func() error {
		select {
		case err := <-read:
			return err
		default:
			return nil
		}
	}
}

// An outputReader reads what a command prints, and writes it to the caller's writers.
type outputReader struct {
	c     host.Command
	mutex sync.Mutex       // held while output is written
	tail  *host.TailBuffer // the end of the output that is shown in errors
	deaf  bool             // nothing is written any more
	pid   int              // of the command on the machine, or 0 if unknown
}

// wait waits for the end of a command. It kills the command when ctx ends, or when a writer of
// the output fails.
func (e *outputReader) wait(ctx context.Context, c *Client, s *session) error {
	begun, refused := make(chan int, 1), make(chan error, 2)
	var outputs sync.WaitGroup
	outputs.Go(func() { refused <- e.readStdout(s.Channel, begun) })
	outputs.Go(func() { refused <- e.copyOutput(s.Stderr(), e.c.Stderr, true) })
	heard := make(chan struct{})
	go func() {
		outputs.Wait()
		close(heard)
	}()
	over := s.over
	for {
		select {
		case pid := <-begun:
			e.pid = pid
		case err := <-refused:
			if err != nil {
				e.stop(c, s, begun, heard)
				return err
			}
		case <-ctx.Done():
			e.stop(c, s, begun, heard)
			return nil
		case <-over:
			over = nil
			select {
			case <-heard:
			case <-ctx.Done():
				continue
			case <-time.After(endGrace): // a process that the command left behind holds its output
				e.stopWriting()
			}
			select {
			case e.pid = <-begun:
			default:
			}
			for range 2 {
				select {
				case err := <-refused:
					if err != nil {
						return err
					}
				default:
				}
			}
			return nil
		}
	}
}

// stopWriting stops all further writes to the caller's writers.
func (e *outputReader) stopWriting() {
	e.mutex.Lock()
	e.deaf = true
	e.mutex.Unlock()
}

// stop kills the command with its process group, and closes the session.
func (e *outputReader) stop(c *Client, s *session, begun <-chan int, heard <-chan struct{}) {
	select {
	case e.pid = <-begun:
	default:
	}
	if e.pid != 0 {
		c.kill(e.pid)
	}
	_ = s.Close()
	select {
	case <-heard:
	case <-time.After(endGrace):
	}
	e.stopWriting()
}

// kill kills the process group of a command.
func (c *Client) kill(pid int) {
	ctx, cancel := context.WithTimeout(context.Background(), endGrace)
	defer cancel()
	s, err := c.open(ctx)
	if err != nil {
		return
	}
	defer s.Close() //nolint:errcheck // it has ended
	const script = `g=$(ps -o pgid= -p "$1") && kill -s KILL -- "-$((g))"`
	words := slices.Concat(c.asUser("root"), []string{"/bin/sh", "-c", script, "orrery", strconv.Itoa(pid)})
	if _, err := s.SendRequest("exec", false,
		ssh.Marshal(struct{ Command string }{"exec " + shell.Join(words)})); err != nil {
		return
	}
	select {
	case <-s.over:
	case <-ctx.Done():
	}
}

// readStdout reads the standard output of a command, which begins with its process id.
func (e *outputReader) readStdout(from io.Reader, begun chan<- int) error {
	if e.c.TTY {
		return e.copyOutput(from, e.c.Stdout, false)
	}
	text := bufio.NewReaderSize(from, 32<<10)
	line, err := firstLine(text)
	if err != nil {
		return nil // the command was not started
	}
	pid, err := strconv.Atoi(line)
	if err != nil || pid <= 1 || pid > 1<<30 {
		return fmt.Errorf("the SSH server sent %q instead of a process ID", line)
	}
	begun <- pid
	return e.copyOutput(text, e.c.Stdout, e.c.Stdout == nil || e.c.Stderr != nil)
}

// firstLine reads a line of at most 16 bytes.
func firstLine(from *bufio.Reader) (string, error) {
	var line []byte
	for len(line) < 16 {
		b, err := from.ReadByte()
		if err != nil {
			return "", err
		}
		if b == '\n' {
			break
		}
		line = append(line, b)
	}
	return string(line), nil
}

// copyOutput copies a stream to a writer.
func (e *outputReader) copyOutput(from io.Reader, to io.Writer, keep bool) error {
	piece := make([]byte, 32<<10)
	for {
		n, err := from.Read(piece)
		if n > 0 {
			if err := e.writeOutput(piece[:n], to, keep); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}

func (e *outputReader) writeOutput(text []byte, to io.Writer, keep bool) error {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if keep {
		_, _ = e.tail.Write(text) // to memory
	}
	if to == nil || e.deaf {
		return nil
	}
	_, err := to.Write(text)
	return err
}

// Put writes files on the machine.
func (c *Client) Put(ctx context.Context, files ...host.File) error {
	return host.PutByCommand(ctx, c, files...)
}
