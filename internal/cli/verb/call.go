package verb

import (
	"fmt"
	"io"

	"orrery/internal/cli/screen"
	"orrery/internal/control"
	"orrery/internal/problem"
	"orrery/internal/text/alike"
)

// A Call is one call of the program: its session, its streams, and the consent given by its flags.
type Call struct {
	Session *control.Session
	Output
	In      io.Reader
	consent consent
	yes     *bool // given by YesFlag
}

// An Output has the streams of a call. Results go to Out, and messages for people go to Err.
type Output struct{ Out, Err io.Writer }

// Raw returns the output itself. If raw output was asked for, it returns one that passes the output
// of nodes to a terminal unchanged.
func (o Output) Raw(asked bool) Output {
	if asked {
		return Output{screen.Raw(o.Out), screen.Raw(o.Err)}
	}
	return o
}

// New returns a call in a session. From now on the session asks and informs the caller through
// these streams.
func New(session *control.Session, in io.Reader, out, errs io.Writer) *Call {
	call := &Call{session, Output{out, errs}, in, consent{}, new(bool)}
	session.Confirmer, session.Watcher = asker{in, errs, call.consent, call.yes}, Watcher{call.Output}
	return call
}

// PrintError prints every problem on lines of its own, and what is the same on several nodes once.
func PrintError(w io.Writer, err error) {
	var all []alike.Message
	for _, text := range problem.Lines(err) {
		all = append(all, alike.Parse(text))
	}
	for _, text := range alike.Merge(all) {
		screen.Paint(w, "orrery:", screen.Bad)
		fmt.Fprintf(w, " %s\n", text)
	}
}

// OnlyExitStatus returns the exit status of an error that has been printed already, without its text.
func OnlyExitStatus(err error) error {
	if err == nil {
		return nil
	}
	return problem.Status(problem.ExitCode(err))
}
