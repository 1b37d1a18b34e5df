package host

import (
	"io"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"orrery/internal/problem"
)

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// onTerminal runs a command on a terminal of its own, and carries what is typed and printed between that and the operator's. The command can do
// to its terminal what it likes; what it types there, it types for itself.
func onTerminal(cmd *exec.Cmd, tune func(*exec.Cmd)) error {
	ours, theirs, err := pty.Open()
	if err != nil {
		return problem.New(problem.Unable, "this host has no pseudo-terminal to give").Because(err).Try("see that /dev/pts is mounted there")
	}
	defer ours.Close()
	_ = pty.InheritSize(os.Stdin, ours)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	cmd.SysProcAttr.Setctty, cmd.SysProcAttr.Ctty = true, 0
	if tune != nil {
		tune(cmd)
	}
	letGo, err := holdTerminal(os.Stdin)
	if err != nil {
		theirs.Close()
		return err
	}
	defer letGo()
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		return err
	}
	defer follow(cmd, os.Stdin, ours)()
	go io.Copy(ours, os.Stdin) //nolint:errcheck // it ends with the program: there is no other way to end the reading of a terminal
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		_, _ = io.Copy(os.Stdout, ours) // a terminal ends with an error (EIO) when nobody holds its other side
	}()
	err = cmd.Wait()
	select {
	case <-printed:
	case <-time.After(linger): // something that is left behind holds it
	}
	return err
}

// holdTerminal has a terminal pass on each key as it is typed, interrupts included, until it is let go.
func holdTerminal(terminal *os.File) (letGo func(), err error) {
	fd := int(terminal.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return nil, problem.New(problem.Usage, "the input is not a terminal").Because(err)
	}
	return func() {
		// The command may have asked the terminal something: the answer would be typed into the operator's shell.
		_ = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH)
		_ = term.Restore(fd, before)
	}, nil
}

// follow gives the terminal of a command the size of the operator's whenever that changes. Signals that would end this program, and leave the operator's
// terminal as it is, end the command instead.
func follow(cmd *exec.Cmd, operators, commands *os.File) (stop func()) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGWINCH, unix.SIGHUP, unix.SIGQUIT)
	go func() {
		for s := range signals {
			if s == unix.SIGWINCH {
				_ = pty.InheritSize(operators, commands)
			} else {
				_ = cmd.Cancel()
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
	}
}
