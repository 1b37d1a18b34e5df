package problem

import (
	"errors"
	"fmt"
)

var kindNames = map[Kind]string{
	Failed: "failed", Usage: "usage", Mistake: "mistake", Unable: "unable", Locked: "locked", Surprise: "surprise",
	Undone: "undone", Left: "left", Refused: "refused",
	Changes: "changes", Unhealthy: "unhealthy", Trial: "trial", Reverted: "reverted", HalfWay: "half-way",
	Interrupted: "interrupted",
}

// String returns the name of the kind, as used in JSON.
func (k Kind) String() string {
	if name, ok := kindNames[k]; ok {
		return name
	}
	return fmt.Sprintf("status-%d", int(k))
}

// Is reports whether one of the problems in an error is of a kind. An error that is not a problem
// has the kind Failed. A Status has the kind with the same number.
func Is(err error, kind Kind) bool {
	var status Status
	if errors.As(err, &status) && Kind(status) == kind {
		return true
	}
	for _, p := range All(err) {
		if p.Kind == kind {
			return true
		}
	}
	return false
}

// All returns the problems in an error in order, including those in lists and in errors joined by
// errors.Join. Each problem appears once, without its causes. All converts other errors to
// problems. It leaves out a Status, because its cause has already been reported.
func All(err error) []*Problem {
	switch e := err.(type) { //nolint:errorlint // what wraps others is gone through below
	case nil, Status:
		return nil
	case *Problem:
		return []*Problem{e}
	case List:
		return e
	case interface{ Unwrap() []error }:
		var all []*Problem
		for _, each := range e.Unwrap() {
			all = append(all, All(each)...)
		}
		return all
	}
	var p *Problem
	var list List
	var status Status
	switch {
	case errors.As(err, &list):
		return list
	case errors.As(err, &p):
		return []*Problem{p}
	case errors.As(err, &status):
		return nil
	}
	return []*Problem{{Kind: Failed, What: err.Error()}}
}

// Lines returns the texts of the errors that an error consists of, each of which may be shown on its own.
func Lines(err error) []string {
	switch e := err.(type) { //nolint:errorlint // what wraps others has a text of its own
	case List:
		var texts []string
		for _, p := range e {
			texts = append(texts, p.Error())
		}
		return texts
	case interface{ Unwrap() []error }:
		var texts []string
		for _, each := range e.Unwrap() {
			texts = append(texts, Lines(each)...)
		}
		return texts
	}
	var list List
	if errors.As(err, &list) {
		return Lines(list)
	}
	return []string{err.Error()}
}
