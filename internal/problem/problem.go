// Package problem reports what is wrong, where, and how to cure it.
//
// Every error that reaches a user is a *Problem or a List of them. Its Kind determines the exit
// status of the program (see Exit). A test compares the kinds with the table in docs/commands.md.
package problem

import (
	"errors"
	"fmt"
	"strings"
)

// Kind is the category of a problem. It determines the exit status.
type Kind int

// The kinds, each with its exit status.
const (
	Failed      Kind = 1   // the operation was attempted and failed
	Usage       Kind = 2   // the command line is wrong
	Mistake     Kind = 3   // the site directory has mistakes
	Unable      Kind = 4   // this host lacks something that is required
	Locked      Kind = 5   // another process is working on this host
	Surprise    Kind = 6   // the host has changed since the plan was made
	Undone      Kind = 7   // the operation failed and its changes were undone
	Left        Kind = 8   // the operation failed and some work remains
	Refused     Kind = 9   // the user did not confirm an operation
	Changes     Kind = 10  // `orrery plan` found changes to make (not an error)
	Unhealthy   Kind = 11  // `orrery status` found nodes that are not as declared
	Trial       Kind = 12  // a release is live and waits for confirmation (not an error)
	Reverted    Kind = 13  // a switch failed or was not confirmed; the nodes are back at the former release
	HalfWay     Kind = 14  // a switch failed, and the nodes are at more than one release
	Interrupted Kind = 130 // Ctrl-C or SIGTERM
)

// FailedNodes is the base of the exit status of `orrery exec`. The number of nodes on which the
// command failed (at most 100) is added to it.
const FailedNodes = 100

// A Problem is one thing that is wrong.
type Problem struct {
	Kind  Kind
	What  string // what is wrong, with the offending value
	Where string // file:line, host or node; may be empty
	Cure  string // what to do about it; may be empty
	Err   error  // the underlying error, or nil
}

// Error returns "where: what: cause (cure)". The cause may have several lines.
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

// New returns a problem of a kind. The format is for What. Use Because for the error that caused
// it, instead of a trailing %w or %v.
func New(kind Kind, format string, args ...any) *Problem {
	return &Problem{Kind: kind, What: fmt.Sprintf(format, args...)}
}

// At sets Where and returns p.
func (p *Problem) At(where string) *Problem { p.Where = where; return p }

// Because sets Err, the cause, and returns p.
func (p *Problem) Because(err error) *Problem { p.Err = err; return p }

// Try sets Cure and returns p.
func (p *Problem) Try(format string, args ...any) *Problem {
	p.Cure = fmt.Sprintf(format, args...)
	return p
}

// A List is several problems found at once. The nil List means no problem.
type List []*Problem

// Error returns one line per problem.
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

// ExitCode returns the exit status for an error: 0 for nil, 1 for an error that is not a problem.
func ExitCode(err error) int {
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

// A Status is an error that is only an exit status, because everything has already been reported.
type Status int

// Error returns the status as text.
func (s Status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }
