package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"orrery/internal/control/nodes"
	"orrery/internal/host"
	"orrery/internal/phrase"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// longestLine is how much of a line without an end is kept for each node.
const longestLine = 256 << 10

// mostKept is how much is kept of what a node prints, where it is shown at its end only.
const mostKept = 1 << 20

// prefixed shows each line behind the name of its node.
type prefixed struct {
	mu         sync.Mutex
	lines, own io.Writer // of nodes; ours, on how it ended
	names      []string
	width      int
	grouped    bool // the lines of a node stand together, when it has ended
}

func newPrefixed(lines, own io.Writer, of []*site.Node, grouped bool) *prefixed {
	p := &prefixed{lines: lines, own: own, grouped: grouped}
	for _, n := range of {
		p.names = append(p.names, n.Name)
		p.width = max(p.width, len(n.Name))
	}
	return p
}

func (p *prefixed) Of(i int) nodes.Speaker {
	v := &voice{speech: p, prefix: fmt.Sprintf("%-*s | ", p.width, p.names[i])}
	v.lines = host.NewLines(longestLine, v.line)
	return v
}

func (p *prefixed) Close() error { return nil }

// A voice is one node of a prefixed speech. Its output and its errors take turns.
type voice struct {
	speech *prefixed
	prefix string
	lines  *host.Lines
	kept   bytes.Buffer
	over   int // bytes that were not kept
}

func (v *voice) Out() io.Writer  { return v.lines }
func (v *voice) Errs() io.Writer { return v.lines }

func (v *voice) line(line []byte) error {
	if !v.speech.grouped {
		v.speech.mu.Lock()
		defer v.speech.mu.Unlock()
		_, err := fmt.Fprintf(v.speech.lines, "%s%s", v.prefix, line)
		return err
	}
	if v.over > 0 || v.kept.Len()+len(line) > mostKept {
		v.over += len(line)
		return nil
	}
	_, err := fmt.Fprintf(&v.kept, "%s%s", v.prefix, line)
	return err
}

func (v *voice) End(e nodes.Ending) {
	_ = v.lines.End() // whoever reads it has gone: the command has met that error, too
	v.speech.mu.Lock()
	defer v.speech.mu.Unlock()
	_, _ = v.kept.WriteTo(v.speech.lines)
	if v.over > 0 {
		fmt.Fprintf(v.speech.own, "%s… and %d bytes more, which are left out\n", v.prefix, v.over)
	}
	if e.Err != nil {
		fmt.Fprintf(v.speech.own, "%s%s\n", v.prefix, brief(e.Err))
	}
}

// An answer is how a command ended on one node, for programs.
type answer struct {
	Node    string  `json:"node"`
	Status  int     `json:"status"` // exit status; -1: it did not run to its end
	Error   string  `json:"error,omitempty"`
	Output  string  `json:"output"`
	Errors  string  `json:"errors"`
	Cut     bool    `json:"cut,omitempty"` // it printed more than is in here
	Seconds float64 `json:"seconds"`
}

// reported prints a list of answers, each as soon as its node has ended.
type reported struct {
	mu   sync.Mutex
	to   io.Writer
	some bool
	err  error
}

func (r *reported) Of(int) nodes.Speaker { return &recording{list: r} }

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
	r.some, r.err = true, firstError(r.err, err)
	_ = r.write(begin + string(text)) // close tells
}

// A recording is one node of a reported speech.
type recording struct {
	list         *reported
	said, erring beginning
}

func (r *recording) Out() io.Writer  { return &r.said }
func (r *recording) Errs() io.Writer { return &r.erring }

func (r *recording) End(e nodes.Ending) {
	one := answer{Node: e.Node, Output: r.said.text.String(), Errors: r.erring.text.String(), Cut: r.said.cut || r.erring.cut, Seconds: e.Took.Seconds()}
	var run *host.RunError
	switch {
	case e.Err == nil:
	case errors.As(e.Err, &run) && run.Status > 0:
		one.Status = run.Status
	default:
		one.Status, one.Error = -1, brief(e.Err)
	}
	r.list.add(one)
}

// A beginning keeps the first of what is written to it.
type beginning struct {
	text bytes.Buffer
	cut  bool
}

func (b *beginning) Write(p []byte) (int, error) {
	room := min(len(p), mostKept-b.text.Len())
	b.cut = b.cut || room < len(p)
	b.text.Write(p[:room])
	return len(p), nil
}

// brief gives an error without the output of the command, which has been printed.
func brief(err error) string {
	var run *host.RunError
	if errors.As(err, &run) && run.Status > 0 {
		return fmt.Sprintf("exit status %d", run.Status)
	}
	return err.Error()
}

// tally says on how many nodes it succeeded, and gives the exit status of what is done on many.
func (a *app) tally(endings []nodes.Ending) error {
	wrong := nodes.Failed(endings)
	fmt.Fprintf(a.err, "%d of %d nodes succeeded", len(endings)-len(wrong), len(endings))
	if len(wrong) == 0 {
		fmt.Fprintln(a.err, ".")
		return nil
	}
	fmt.Fprintf(a.err, "; failed: %s.\n", phrase.List(wrong, 20))
	return problem.Status(problem.FailedNodes + min(len(wrong), 100))
}
