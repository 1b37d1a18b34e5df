package rpc

import (
	"context"
	"errors"
	"strings"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// An answer says how a call ended. All of it comes from the server: texts for messages, and a
// number.
type answer struct {
	Failed bool   `json:"failed,omitempty"`
	Ran    bool   `json:"ran,omitempty"` // the call was a command, and Status and Output are set
	Status int    `json:"status,omitempty"`
	Output string `json:"output,omitempty"` // the last bytes of it
	Why    string `json:"why,omitempty"`    // the error message
	Cure   string `json:"cure,omitempty"`
	Unable bool   `json:"unable,omitempty"` // the problem's kind is Unable, not Failed
	InUse  bool   `json:"inuse,omitempty"`  // the call failed because something is in use, and Why says by what
}

// InUse is the error for something that is in use. By names its users, or is "" if the machine does
// not know them.
type InUse struct{ By string }

func (u *InUse) Error() string { return "it is in use by " + u.By }

// Limits of the texts in an answer.
const (
	maxOutputBytes = 16 << 10
	maxWordsBytes  = 4 << 10
)

// newAnswer returns the answer for the result of a call.
func newAnswer(err error) answer {
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

// abandonedError returns the error for a command whose caller did not wait until it ended.
func abandonedError(ctx context.Context, place string, c host.Command, output string) error {
	return &host.RunError{Place: place, Command: c.Args, Status: -1, Output: output, Err: context.Cause(ctx)}
}

func lastBytes(text string, most int) string {
	if len(text) > most {
		text = text[len(text)-most:]
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
