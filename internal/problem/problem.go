// Package problem is how Orrery reports that something is wrong: what, where, and the cure.
//
// Every error that reaches a user is a *Problem or a List of them. Its Kind decides the exit status
// of the program (see Exit); the table in docs/operations.md is checked against it by a test.
package problem

import (
	"errors"
	"fmt"
	"strings"
)

// Kind says what sort of thing went wrong; it decides the exit status.
type Kind int

// The kinds, each with its exit status.
const (
	Failed      Kind = 1   // the work was tried and failed
	Usage       Kind = 2   // the command line is wrong
	Mistake     Kind = 3   // the site directory has mistakes
	Unable      Kind = 4   // this host lacks something that is needed
	Locked      Kind = 5   // somebody else is at work on this host
	Surprise    Kind = 6   // the host is not as it was when the plan was made
	Undone      Kind = 7   // the work failed and what had been done was undone
	Left        Kind = 8   // the work failed and something is left to be done
	Refused     Kind = 9   // the user did not confirm what must be confirmed
	Changes     Kind = 10  // `orrery plan` found changes to make (not an error)
	Unhealthy   Kind = 11  // `orrery status` found nodes that are not as declared
	Trial       Kind = 12  // a release is live and waits for confirmation (not an error)
	Reverted    Kind = 13  // a switch failed or was not confirmed: the set is back at its former release
	HalfWay     Kind = 14  // a switch failed and the set is not wholly at one release
	Interrupted Kind = 130 // Ctrl-C or SIGTERM
)

// FailedNodes is the exit status of `orrery exec` less the number of nodes on which the command
// failed (at most 100).
const FailedNodes = 100

// A Problem is one thing that is wrong.
type Problem struct {
	Kind  Kind
	What  string // what is wrong, with the offending value
	Where string // file:line, host or node; may be empty
	Cure  string // what to do about it; may be empty
	Err   error  // the cause, if another error is behind it
}

// Error returns "where: what: cause (cure)", on as many lines as the cause has.
func (p *Problem) Error() string {
	var b strings.Builder
	if p.Where != "" {
		b.WriteString(p.Where + ": ")
	}
	b.WriteString(p.What)
	if p.Err != nil {
		fmt.Fprintf(&b, ": %v", p.Err)
	}
	if p.Cure != "" {
		if p.Err != nil && strings.Contains(p.Err.Error(), "\n") {
			fmt.Fprintf(&b, "\n  cure: %s", p.Cure)
		} else {
			fmt.Fprintf(&b, " (%s)", p.Cure)
		}
	}
	return b.String()
}

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Err }

// New makes a problem of a kind; What is formatted, a trailing %w or %v of an error is best given by Because.
func New(kind Kind, format string, args ...any) *Problem {
	return &Problem{Kind: kind, What: fmt.Sprintf(format, args...)}
}

// At says where.
func (p *Problem) At(where string) *Problem { p.Where = where; return p }

// Because returns the cause.
func (p *Problem) Because(err error) *Problem { p.Err = err; return p }

// Try returns the cure.
func (p *Problem) Try(format string, args ...any) *Problem {
	p.Cure = fmt.Sprintf(format, args...)
	return p
}

// A List is several problems found at once. The nil List is no problem.
type List []*Problem

// Error returns one problem a line.
func (l List) Error() string {
	lines := make([]string, len(l))
	for i, p := range l {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// OrNil returns the list as an error, or nil if it is empty.
func (l List) OrNil() error {
	if len(l) == 0 {
		return nil
	}
	return l
}

// Exit returns the exit status for an error: 0 for nil, 1 for an error that is no problem.
func Exit(err error) int {
	if err == nil {
		return 0
	}
	var status Status
	if errors.As(err, &status) {
		return int(status)
	}
	var list List
	if errors.As(err, &list) && len(list) > 0 {
		return int(list[0].Kind)
	}
	var p *Problem
	if errors.As(err, &p) {
		return int(p.Kind)
	}
	return int(Failed)
}

// A Status is an exit status that has nothing to say, because all has been said already.
type Status int

// Error names the status.
func (s Status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }
