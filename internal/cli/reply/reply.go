// Package reply prints the JSON of --json.
package reply

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/problem"
)

// version is that of the object which --json prints: it changes when what a program may rely on does.
const version = 1

// A Reply is one object on standard output with the result of the verb, what went wrong, and the
// exit status. A verb that gives JSON writes it through JSON or Result. Of one that does not, the
// result is the text that it would have printed.
type Reply struct {
	Beginning // of what is meant for people
	out, errs io.Writer
	begun     bool // the object, up to the result
	over      bool // one object at least is whole
}

// To begins a reply to a program that reads out; what is meant for people and is not the result goes to errs.
func To(out, errs io.Writer) *Reply {
	return &Reply{Beginning: Beginning{Most: 16 << 20}, out: out, errs: errs}
}

// A Beginning keeps the first of what is written to it.
type Beginning struct {
	Most int // bytes
	Text bytes.Buffer
	Cut  bool // there was more
}

// Write keeps what there is room for.
func (b *Beginning) Write(text []byte) (int, error) {
	room := min(len(text), b.Most-b.Text.Len())
	b.Cut = b.Cut || room < len(text)
	b.Text.Write(text[:room])
	return len(text), nil
}

// Asked reports whether --json is among the arguments, wherever the verb may stand; what is behind
// "--" is another program's.
func Asked(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.ContainsFunc(args, func(arg string) bool {
		value, given := strings.CutPrefix(arg, "--json=")
		asked, err := strconv.ParseBool(value)
		return arg == "--json" || given && err == nil && asked
	})
}

// result begins the object and returns where the result is to be written, as JSON.
func (r *Reply) result() io.Writer {
	if !r.begun {
		fmt.Fprintf(r.out, "{\"version\": %d, \"result\": ", version)
		r.begun = true
	}
	return r.out
}

// An entry is a problem as programs get it.
type entry struct {
	Kind   string `json:"kind"`
	What   string `json:"what"`
	Where  string `json:"where,omitempty"`
	Cure   string `json:"cure,omitempty"`
	Status int    `json:"status"`
}

// Finish ends the object; nil: none was asked for.
func (r *Reply) Finish(err error) {
	switch {
	case r == nil:
		return
	case r.begun:
		_, _ = r.Text.WriteTo(r.errs)
	case r.over && err == nil:
		return // nothing since
	case r.Text.Len() > 0:
		_ = JSON(r, struct {
			Output string `json:"output"`
			Cut    bool   `json:"cut,omitempty"`
		}{r.Text.String(), r.Cut})
		r.Text.Reset()
	default:
		_ = JSON(r, nil)
	}
	entries := []entry{}
	for _, p := range problem.All(err) {
		what := p.What
		if p.Err != nil {
			what += ": " + p.Err.Error()
		}
		entries = append(entries, entry{Kind: p.Kind.String(), What: what, Where: p.Where, Cure: p.Cure, Status: int(p.Kind)})
	}
	fmt.Fprint(r.out, `, "errors": `)
	_ = JSON(r.out, entries) // whoever reads it has gone
	fmt.Fprintf(r.out, ", \"status\": %d}\n", problem.Exit(err))
	r.begun, r.over = false, true
}

// Wanted reports whether what is printed is for programs (--json).
func Wanted(w io.Writer) bool {
	_, ok := w.(*Reply)
	return ok
}

// Result returns where a verb writes its result as JSON.
func Result(w io.Writer) io.Writer {
	if r, ok := w.(*Reply); ok {
		return r.result()
	}
	return w
}

// JSON writes something as JSON.
func JSON(w io.Writer, x any) error {
	e := json.NewEncoder(Result(w))
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(x)
}

// Answer prints the result of a verb: to programs as JSON, otherwise as tell does.
func Answer(w io.Writer, result any, tell func()) error {
	if Wanted(w) {
		return JSON(w, result)
	}
	tell()
	return nil
}
