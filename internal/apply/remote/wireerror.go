package remote

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/transport/transfer"
)

// A wireError is an error in a message.
type wireError struct {
	Problems []wireProblem     `json:"problems,omitempty"`
	Run      *wireCommandError `json:"run,omitempty"`
	Gone     bool              `json:"gone,omitempty"` // fs.ErrNotExist
	Cut      bool              `json:"cut,omitempty"`  // transfer.ErrConnectionLost
}

type wireProblem struct {
	Kind  problem.Kind `json:"kind"`
	What  string       `json:"what"`
	Where string       `json:"where,omitempty"`
	Cure  string       `json:"cure,omitempty"`
	Cause string       `json:"cause,omitempty"`
}

// A wireCommandError is a command that failed.
type wireCommandError struct {
	Place   string   `json:"place"`
	Command []string `json:"command"`
	Status  int      `json:"status"`
	Output  string   `json:"output,omitempty"`
	Cause   string   `json:"cause,omitempty"`
}

// toWireError converts an error to a fault.
func toWireError(err error) *wireError {
	if err == nil {
		return nil
	}
	f := &wireError{Gone: errors.Is(err, fs.ErrNotExist), Cut: errors.Is(err, transfer.ErrConnectionLost)}
	var run *host.RunError
	var p *problem.Problem
	if errors.As(err, &run) && !errors.As(err, &p) {
		f.Run = &wireCommandError{run.Place, run.Command, run.Status, run.Output, text(run.Err)}
		return f
	}
	for _, p := range problem.All(err) {
		t := wireProblem{p.Kind, p.What, p.Where, p.Cure, text(p.Err)}
		if full := unix.ENOSPC.Error(); p.Cure == "" && problem.DiskFull(err) &&
			(strings.Contains(t.What, full) || strings.Contains(t.Cause, full)) {
			t.fill()
		}
		f.Problems = append(f.Problems, t)
	}
	return f
}

// fill marks the trouble as caused by a full disk of the remote host, because the control host
// cannot see that from the text.
func (t *wireProblem) fill() {
	if t.Cause != "" {
		t.What += ": " + t.Cause
	}
	t.Kind, t.What, t.Cause = problem.Unable, "its disk is full", t.What
	t.Cure = "make room there, such as by orrery snapshot rm, orrery release prune or orrery image gc, and run the same command again"
}

// failureKind returns the kind that a helper has sent if it is a kind of failure, else Failed. It becomes
// an exit status, of which 0 would be success.
func failureKind(k problem.Kind) problem.Kind {
	if k >= problem.Failed && k <= problem.Refused || k == problem.Reverted || k == problem.HalfWay ||
		k == problem.Interrupted {
		return k
	}
	return problem.Failed
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// toError converts the fault back to an error, with all its text and with the errors that callers test
// for.
func (f *wireError) toError() error {
	if f == nil {
		return nil
	}
	err := f.decode()
	var marks []error
	if f.Gone {
		marks = append(marks, fs.ErrNotExist)
	}
	if f.Cut {
		marks = append(marks, transfer.ErrConnectionLost)
	}
	switch {
	case len(marks) == 0 && err == nil:
		return problem.New(problem.Failed, "it failed without giving a cause")
	case len(marks) == 0:
		return err
	case err == nil:
		return marks[0]
	}
	return &remoteError{err, marks}
}

// A remoteError is an error from a remote host that still matches the same errors with errors.Is.
type remoteError struct {
	error
	is []error
}

func (m *remoteError) Unwrap() error        { return m.error }
func (m *remoteError) Is(target error) bool { return slices.Contains(m.is, target) }

// decode returns the error that the fault describes, or nil.
func (f *wireError) decode() error {
	if f.Run != nil {
		e := &host.RunError{Place: f.Run.Place, Command: slices.Clone(f.Run.Command), Status: f.Run.Status,
			Output: f.Run.Output}
		if f.Run.Cause != "" {
			e.Err = errors.New(f.Run.Cause)
		}
		return e
	}
	var all problem.List
	for _, t := range f.Problems {
		p := problem.New(failureKind(t.Kind), "%s", t.What).At(t.Where)
		if t.Cause != "" {
			p = p.Because(errors.New(t.Cause))
		}
		if t.Cure != "" {
			p = p.Try("%s", t.Cure)
		}
		all = append(all, p)
	}
	if len(all) == 1 {
		return all[0]
	}
	return all.OrNil()
}
