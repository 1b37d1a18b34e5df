package screen

import (
	"errors"
	"io"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// Command returns a command that uses the streams of this program, or its terminal if the streams
// are one.
func Command(in io.Reader, out, errs io.Writer, args []string) host.Command {
	c := host.Command{Args: args, TTY: host.IsTerminal(in) && host.IsTerminal(Raw(out))}
	if !c.TTY {
		c.Stdin, c.Stdout, c.Stderr = in, out, errs
	}
	return c
}

// OnlyExitStatus reduces an error to the exit status, if the command has printed the error itself.
func OnlyExitStatus(err error) error {
	var run *host.RunError
	if errors.As(err, &run) && run.Status > 0 {
		return problem.Status(run.Status)
	}
	return err
}
