package rpc

import (
	"context"
	"errors"
	"strings"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// An answer says how a call went. All of it is what a far end says: words for messages, and a number.
type answer struct {
	Failed bool   `json:"failed,omitempty"`
	Ran    bool   `json:"ran,omitempty"` // a command, and Status and Output are its
	Status int    `json:"status,omitempty"`
	Output string `json:"output,omitempty"` // the end of it
	Why    string `json:"why,omitempty"`    // in words
	Cure   string `json:"cure,omitempty"`
	Unable bool   `json:"unable,omitempty"` // the kind of the problem, if it is not that something failed
	InUse  bool   `json:"inuse,omitempty"`  // what is to be let go of, and Why says by whom
}

// InUse says who uses what a machine is to let go of, in its words; "" is somebody whom it does not know.
type InUse struct{ By string }

func (u *InUse) Error() string { return "it is in use by " + u.By }

// Bounds of what an answer says.
const (
	maxOutputBytes = 16 << 10
	maxWordsBytes  = 4 << 10
)

// answerOf puts in words what came of a call.
func answerOf(err error) answer {
	if err == nil {
		return answer{}
	}
	a := answer{Failed: true}
	var run *host.RunError
	var p *problem.Problem
	var used *InUse
	switch {
	case errors.As(err, &used):
		a.InUse, a.Why = true, shorten(used.By, maxWordsBytes)
	case errors.As(err, &run):
		a.Ran, a.Status, a.Output = true, run.Status, lastBytes(run.Output, maxOutputBytes)
		if run.Err != nil {
			a.Why = shorten(run.Err.Error(), maxWordsBytes)
		}
	case errors.As(err, &p):
		a.Why, a.Cure, a.Unable = shorten(p.What, maxWordsBytes), shorten(p.Cure, maxWordsBytes), p.Kind == problem.Unable
		if p.Err != nil {
			a.Why = shorten(a.Why+": "+p.Err.Error(), maxWordsBytes)
		}
	default:
		a.Why = shorten(err.Error(), maxWordsBytes)
	}
	return a
}

// err returns the error that an answer describes, as a Runner of this machine would return it.
func (a answer) err(place string, command []string) error {
	if !a.Failed {
		return nil
	}
	if a.InUse {
		return &InUse{shorten(a.Why, maxWordsBytes)}
	}
	why := errors.New(shorten(a.Why, maxWordsBytes))
	if a.Ran {
		status := a.Status
		if status < -1 || status > 255 {
			status = -1
		}
		return &host.RunError{Place: place, Command: command, Status: status, Output: lastBytes(a.Output, maxOutputBytes),
			Err: why}
	}
	kind := problem.Failed
	if a.Unable {
		kind = problem.Unable
	}
	p := problem.New(kind, "%s", why)
	if place != "" {
		p = p.At(place)
	}
	if a.Cure != "" {
		p = p.Try("%s", shorten(a.Cure, maxWordsBytes))
	}
	return p
}

// gaveUp is the error of a command whose caller did not wait for its end.
func gaveUp(ctx context.Context, place string, c host.Command, output string) error {
	return &host.RunError{Place: place, Command: c.Args, Status: -1, Output: output, Err: context.Cause(ctx)}
}

func lastBytes(text string, most int) string {
	if len(text) > most {
		text = text[len(text)-most:]
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
