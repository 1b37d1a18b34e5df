package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"orrery/internal/problem"
)

// replyVersion is that of the object which --json prints: it changes when what a program may rely on does.
const replyVersion = 1

// A reply is what a program gets that calls with --json: one object on standard output with the result of the verb, what went wrong, and the exit status.
// A verb that gives JSON writes it through printJSON or jsonTo. Of one that does not, the result is the text that it would have printed.
type reply struct {
	out, errs io.Writer
	text      bytes.Buffer
	cut       bool // there was more text than is kept
	begun     bool // the object, up to the result
	over      bool // one object at least is whole
}

// mostReplied is how much text of a verb is kept for its reply.
const mostReplied = 16 << 20

// asksJSON reports whether --json is among the arguments, wherever the verb may stand; what is behind "--" is another program's.
func asksJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "--json=true")
}

// Write takes what is meant for people.
func (r *reply) Write(text []byte) (int, error) {
	room := mostReplied - r.text.Len()
	r.cut = r.cut || len(text) > room
	r.text.Write(text[:min(len(text), room)])
	return len(text), nil
}

// json begins the object and gives where the result is to be written, as JSON.
func (r *reply) json() io.Writer {
	if !r.begun {
		fmt.Fprintf(r.out, "{\"version\": %d, \"result\": ", replyVersion)
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

// finish ends the object.
func (r *reply) finish(err error) {
	switch {
	case r.begun:
		_, _ = r.text.WriteTo(r.errs)
	case r.over && err == nil:
		return // nothing since
	case r.text.Len() > 0:
		_ = printJSON(r, struct {
			Output string `json:"output"`
			Cut    bool   `json:"cut,omitempty"`
		}{r.text.String(), r.cut})
		r.text.Reset()
	default:
		_ = printJSON(r, nil)
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
	_ = printJSON(r.out, entries) // whoever reads it has gone
	fmt.Fprintf(r.out, ", \"status\": %d}\n", problem.Exit(err))
	r.begun, r.over = false, true
}

// last ends the object, if one was asked for, when the verb has ended.
func (r *reply) last(err error) {
	if r != nil {
		r.finish(err)
	}
}

// programs reports whether what is printed is for programs (--json).
func programs(w io.Writer) bool {
	_, are := w.(*reply)
	return are
}

// jsonTo gives where a verb writes its result as JSON.
func jsonTo(w io.Writer) io.Writer {
	if r, ok := w.(*reply); ok {
		return r.json()
	}
	return w
}

func printJSON(w io.Writer, x any) error {
	e := json.NewEncoder(jsonTo(w))
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(x)
}
