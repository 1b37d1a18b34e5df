package nodeverb

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"orrery/internal/cli/reply"
	"orrery/internal/control/nodes"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/alike"
	"orrery/internal/text/humanize"
)

// maxLineBytes is the maximum length of an unfinished line that is stored for each node.
const maxLineBytes = 256 << 10

// maxKeptBytes is how much of a node's output is stored if it is shown only at the end.
const maxKeptBytes = 1 << 20

// A prefixed output prints each line after the name of its node.
type prefixed struct {
	mu         sync.Mutex
	lines, own io.Writer // for the nodes' lines; for messages about their results
	names      []string
	width      int
	grouped    bool // print the lines of a node together, when it has ended
	// print errors at once, and not at the end, when it is known which nodes have the same
	endless bool
	wrong   []*alike.Message // by node, or nil
}

// newSpeech returns an output that shows what many nodes print at once. For people, it prints lines that
// begin with the name of the node. For programs, it prints a list.
func newSpeech(out, errs io.Writer, of []*site.Node, grouped bool) nodes.Output {
	if reply.IsJSON(out) {
		return newReported(out)
	}
	return newPrefixed(out, errs, of, grouped)
}

// newPrefixed prints the lines of nodes as they come or, if grouped, when their node has ended.
// Results are printed to own.
func newPrefixed(lines, own io.Writer, of []*site.Node, grouped bool) *prefixed {
	p := &prefixed{lines: lines, own: own, grouped: grouped}
	for _, n := range of {
		p.names = append(p.names, n.Name)
		p.width = max(p.width, len(n.Name))
	}
	p.wrong = make([]*alike.Message, len(of))
	return p
}

// newEndless is like newPrefixed, for nodes that only end when the user ends them.
func newEndless(lines, own io.Writer, of []*site.Node) nodes.Output {
	p := newPrefixed(lines, own, of, false)
	p.endless = true
	return p
}

func (p *prefixed) Of(i int) nodes.NodeOutput {
	v := &prefixedNode{speech: p, at: i, prefix: fmt.Sprintf("%-*s | ", p.width, p.names[i])}
	v.lines = host.NewLineWriter(maxLineBytes, v.line)
	return v
}

// Close prints the errors of the nodes, and once what is the same for several.
func (p *prefixed) Close() error {
	var all []alike.Message
	for _, m := range p.wrong {
		if m != nil {
			all = append(all, *m)
		}
	}
	for _, text := range alike.Merge(all) {
		fmt.Fprintln(p.own, text)
	}
	return nil
}

// A prefixedNode is one node of a prefixed output. Locking keeps its output and its errors apart.
type prefixedNode struct {
	speech *prefixed
	at     int // the number of the node
	prefix string
	lines  *host.LineWriter
	kept   bytes.Buffer
	over   int // bytes that were not stored
}

func (v *prefixedNode) Out() io.Writer  { return v.lines }
func (v *prefixedNode) Errs() io.Writer { return v.lines }

func (v *prefixedNode) line(line []byte) error {
	if !v.speech.grouped {
		v.speech.mu.Lock()
		defer v.speech.mu.Unlock()
		_, err := fmt.Fprintf(v.speech.lines, "%s%s", v.prefix, line)
		return err
	}
	if v.over > 0 || v.kept.Len()+len(line) > maxKeptBytes {
		v.over += len(line)
		return nil
	}
	_, err := fmt.Fprintf(&v.kept, "%s%s", v.prefix, line)
	return err
}

func (v *prefixedNode) End(e nodes.Result) {
	_ = v.lines.Flush() // the reader is gone, and the command has reported that
	v.speech.mu.Lock()
	defer v.speech.mu.Unlock()
	_, _ = v.kept.WriteTo(v.speech.lines)
	if v.over > 0 {
		fmt.Fprintf(v.speech.own, "%s… and %d more bytes, which are not shown\n", v.prefix, v.over)
	}
	if e.Err == nil {
		return
	}
	text := withoutOutput(e.Err)
	full := v.prefix + text
	if v.speech.endless {
		fmt.Fprintln(v.speech.own, full)
		return
	}
	v.speech.wrong[v.at] = &alike.Message{Kind: "node", Name: e.Node, Text: text, Full: full}
}

// An answer is the result of a command on one node, for programs.
type answer struct {
	Node    string  `json:"node"`
	Status  int     `json:"status"` // exit status, or -1 if it did not run to its end
	Error   string  `json:"error,omitempty"`
	Output  string  `json:"output"`
	Errors  string  `json:"errors"`
	Cut     bool    `json:"cut,omitempty"` // it printed more than is stored here
	Seconds float64 `json:"seconds"`
}

// newReported prints a JSON list of answers, each when its node has ended.
func newReported(to io.Writer) nodes.Output { return &reported{to: reply.Result(to)} }

type reported struct {
	mu   sync.Mutex
	to   io.Writer
	some bool
	err  error
}

func (r *reported) Of(int) nodes.NodeOutput {
	return &reportedNode{list: r, said: reply.HeadBuffer{Most: maxKeptBytes}, erring: reply.HeadBuffer{Most: maxKeptBytes}}
}

func (r *reported) Close() error {
	end := "\n]\n"
	if !r.some {
		end = "[]\n"
	}
	return r.write(end)
}

func (r *reported) write(text string) error {
	if r.err == nil {
		_, r.err = io.WriteString(r.to, text)
	}
	return r.err
}

func (r *reported) add(one answer) {
	text, err := json.Marshal(one)
	r.mu.Lock()
	defer r.mu.Unlock()
	begin := "[\n  "
	if r.some {
		begin = ",\n  "
	}
	r.some, r.err = true, cmp.Or(r.err, err)
	_ = r.write(begin + string(text)) // Close returns the error
}

// A reportedNode is one node of a reported output.
type reportedNode struct {
	list         *reported
	said, erring reply.HeadBuffer
}

func (r *reportedNode) Out() io.Writer  { return &r.said }
func (r *reportedNode) Errs() io.Writer { return &r.erring }

func (r *reportedNode) End(e nodes.Result) {
	one := answer{Node: e.Node, Output: r.said.Text.String(), Errors: r.erring.Text.String(), Cut: r.said.Cut ||
		r.erring.Cut, Seconds: e.Took.Seconds()}
	var run *host.RunError
	switch {
	case e.Err == nil:
	case errors.As(e.Err, &run) && run.Status > 0:
		one.Status = run.Status
	default:
		one.Status, one.Error = -1, withoutOutput(e.Err)
	}
	r.list.add(one)
}

// withoutOutput returns the text of an error without the output of the command, which has been printed
// already.
func withoutOutput(err error) string {
	var run *host.RunError
	if errors.As(err, &run) && run.Status > 0 {
		return fmt.Sprintf("exit status %d", run.Status)
	}
	return err.Error()
}

// printTally prints on how many nodes something succeeded, and returns the exit status for all of them.
// If err is more than an exit status, the work was not done, and printTally returns err.
func printTally(w io.Writer, endings []nodes.Result, err error) error {
	var status problem.Status
	if err != nil && !errors.As(err, &status) {
		return err
	}
	wrong := nodes.Failed(endings)
	fmt.Fprintf(w, "%d of %d nodes succeeded", len(endings)-len(wrong), len(endings))
	if len(wrong) == 0 {
		fmt.Fprintln(w, ".")
		return nil
	}
	fmt.Fprintf(w, "; failed: %s.\n", humanize.List(wrong, 20))
	return nodes.ExitStatus(endings)
}
