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

// version is the version of the object that --json prints. It changes when the format changes
// incompatibly.
const version = 1

// A Reply prints one object to standard output, with the result of the verb, the errors, and the
// exit status. A verb that supports JSON writes its result through JSON or Result. For other verbs,
// the result is the text that they print.
type Reply struct {
	HeadBuffer // the text for people
	out, errs  io.Writer
	begun      bool // the object was written, up to the result
	over       bool // at least one object is complete
}

// New begins a reply to a program that reads out. Messages for people that are not the result go to
// errs.
func New(out, errs io.Writer) *Reply {
	return &Reply{HeadBuffer: HeadBuffer{Most: 16 << 20}, out: out, errs: errs}
}

// A HeadBuffer stores the beginning of what is written to it.
type HeadBuffer struct {
	Most int // maximum number of bytes
	Text bytes.Buffer
	Cut  bool // there was more
}

// Write stores as much as fits.
func (b *HeadBuffer) Write(text []byte) (int, error) {
	room := min(len(text), b.Most-b.Text.Len())
	b.Cut = b.Cut || room < len(text)
	b.Text.Write(text[:room])
	return len(text), nil
}

// IsRequested reports whether --json is among the arguments, before or after the verb. Arguments after
// "--" belong to another program.
func IsRequested(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.ContainsFunc(args, func(arg string) bool {
		value, given := strings.CutPrefix(arg, "--json=")
		asked, err := strconv.ParseBool(value)
		return arg == "--json" || given && err == nil && asked
	})
}

// result begins the object and returns the writer for the result, which must be JSON.
func (r *Reply) result() io.Writer {
	if !r.begun {
		fmt.Fprintf(r.out, "{\"version\": %d, \"result\": ", version)
		r.begun = true
	}
	return r.out
}

// An entry is a problem in the JSON output.
type entry struct {
	Kind   string `json:"kind"`
	What   string `json:"what"`
	Where  string `json:"where,omitempty"`
	Cure   string `json:"cure,omitempty"`
	Status int    `json:"status"`
}

// Finish ends the object. A nil Reply does nothing, because JSON was not asked for.
func (r *Reply) Finish(err error) {
	switch {
	case r == nil:
		return
	case r.begun:
		_, _ = r.Text.WriteTo(r.errs)
	case r.over && err == nil:
		return // nothing was written since
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
	_ = JSON(r.out, entries) // ignore the error, because the reader is gone
	fmt.Fprintf(r.out, ", \"status\": %d}\n", problem.ExitCode(err))
	r.begun, r.over = false, true
}

// IsJSON reports whether the output is for programs (--json).
func IsJSON(w io.Writer) bool {
	_, ok := w.(*Reply)
	return ok
}

// Result returns the writer for a verb's result as JSON.
func Result(w io.Writer) io.Writer {
	if r, ok := w.(*Reply); ok {
		return r.result()
	}
	return w
}

// JSON writes x as JSON.
func JSON(w io.Writer, x any) error {
	e := json.NewEncoder(Result(w))
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(x)
}

// Add adds a key with what belongs to a result that is a list. The result must have been written.
func (r *Reply) Add(key string, x any) error {
	fmt.Fprintf(r.out, ", %q: ", key)
	return JSON(r.out, x)
}

// Answer prints the result of a verb as JSON for programs, or calls tell.
func Answer(w io.Writer, result any, tell func()) error {
	if IsJSON(w) {
		return JSON(w, result)
	}
	tell()
	return nil
}
