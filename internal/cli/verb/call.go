package verb

import (
	"errors"
	"fmt"
	"io"

	"orrery/internal/cli/screen"
	"orrery/internal/control"
	"orrery/internal/problem"
)

// A Call is one call of the program: the session it works in, its streams, and what its flags agree to.
type Call struct {
	Session *control.Session
	Output
	In      io.Reader
	consent consent
}

// An Output is where a call prints: its result to Out, and whatever else a person is told to Err.
type Output struct{ Out, Err io.Writer }

// Raw returns the output itself or, if asked for, one that passes what nodes print on to a terminal unchanged.
func (o Output) Raw(asked bool) Output {
	if asked {
		return Output{screen.Unshown(o.Out), screen.Unshown(o.Err)}
	}
	return o
}

// New returns a call in a session, which from now on asks and informs the caller through these streams.
func New(session *control.Session, in io.Reader, out, errs io.Writer) *Call {
	call := &Call{session, Output{out, errs}, in, consent{}}
	session.Asker, session.Watcher = asker{in, errs, call.consent}, Watcher{call.Output}
	return call
}

// PrintError prints every problem on lines of its own.
func PrintError(w io.Writer, err error) {
	var list problem.List
	if errors.As(err, &list) {
		for _, p := range list {
			fmt.Fprintf(w, "orrery: %v\n", p)
		}
		return
	}
	fmt.Fprintf(w, "orrery: %v\n", err)
}

// Said keeps the exit status of an error that has been printed already.
func Said(err error) error {
	if err == nil {
		return nil
	}
	return problem.Status(problem.Exit(err))
}
