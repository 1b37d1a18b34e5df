package problem

import (
	"errors"
	"fmt"
)

var names = map[Kind]string{
	Failed: "failed", Usage: "usage", Mistake: "mistake", Unable: "unable", Locked: "locked", Surprise: "surprise",
	Undone: "undone", Left: "left", Refused: "refused",
	Changes: "changes", Unhealthy: "unhealthy", Trial: "trial", Reverted: "reverted", HalfWay: "half-way",
	Interrupted: "interrupted",
}

// String names the kind, as JSON has it.
func (k Kind) String() string {
	if name, ok := names[k]; ok {
		return name
	}
	return fmt.Sprintf("status-%d", int(k))
}

// Is reports whether one of the problems in an error is of a kind. An error that is no problem is
// of the kind Failed, and a Status of the kind that it is the status of.
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

// All returns the problems in an error, in their order: those of lists and of what errors.Join has
// joined, each once, without what is behind it as its cause. What is no problem becomes one. A
// Status is none: what there was to say of it has been said.
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
