package screen

import (
	"errors"
	"io"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// Command returns a command on the streams of this program: on its terminal, if that is what they are.
func Command(in io.Reader, out, errs io.Writer, args []string) host.Command {
	c := host.Command{Args: args, TTY: host.IsTerminal(in) && host.IsTerminal(Unshown(out))}
	if !c.TTY {
		c.Stdin, c.Stdout, c.Stderr = in, out, errs
	}
	return c
}

// Ended leaves it at the exit status of a command that has said itself what was wrong.
func Ended(err error) error {
	var run *host.RunError
	if errors.As(err, &run) && run.Status > 0 {
		return problem.Status(run.Status)
	}
	return err
}
