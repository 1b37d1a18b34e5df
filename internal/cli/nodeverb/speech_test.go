package nodeverb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"orrery/internal/control/nodes"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// doer is a node in which a command is a function.
type doer struct {
	host.Runner
	do func(ctx context.Context, c host.Command) error
}

func (d doer) Run(ctx context.Context, c host.Command) error { return d.do(ctx, c) }

// three returns nodes of which "b" prints much and fails, "c" never ends, and "d" does not run.
func three() *nodes.Group {
	says := func(_ context.Context, c host.Command) error {
		_, err := io.WriteString(c.Stdout, "one\ntwo\n")
		return err
	}
	return &nodes.Group{
		Nodes:   []*site.Node{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}},
		Timeout: 3 * time.Second, Parallel: 2,
		Runners: map[string]host.Runner{
			"a": doer{do: says},
			"b": doer{do: func(_ context.Context, c host.Command) error {
				_, err := c.Stdout.Write(bytes.Repeat([]byte("much\n"), maxKeptBytes/4))
				return errors.Join(err, &host.RunError{Place: "b", Status: 3})
			}},
			"c": doer{do: func(ctx context.Context, _ host.Command) error {
				<-ctx.Done()
				return &host.RunError{Place: "c", Status: -1, Err: context.Cause(ctx)}
			}},
		},
	}
}

func prints(ctx context.Context, _ int, in host.Runner, to nodes.NodeOutput) error {
	return in.Run(ctx, host.Command{Stdout: to.Out(), Stderr: to.Errs()})
}

// TestReported: programs get the result of each node, with limited output.
func TestReported(t *testing.T) {
	var out, errs bytes.Buffer
	endings, err := three().RunShown(t.Context(), newReported(&out), prints)
	if err != nil {
		t.Fatal(err)
	}
	var all []answer
	if err := json.Unmarshal(out.Bytes(), &all); err != nil || len(all) != 4 {
		t.Fatalf("%v, %d answers", err, len(all))
	}
	of := map[string]answer{}
	for _, one := range all {
		of[one.Node] = one
	}
	if one := of["a"]; one.Status != 0 || one.Output != "one\ntwo\n" || one.Cut || one.Error != "" {
		t.Errorf("a: %+v", one)
	}
	if one := of["b"]; one.Status != 3 || len(one.Output) != maxKeptBytes || !one.Cut {
		t.Errorf("b: status %d, %d bytes, cut: %v", one.Status, len(one.Output), one.Cut)
	}
	if one := of["c"]; one.Status != -1 || one.Error != "not done within 3s" {
		t.Errorf("c: %+v", one)
	}
	if one := of["d"]; one.Status != -1 || !strings.Contains(one.Error, "does not run") {
		t.Errorf("d: %+v", one)
	}
	if err := printTally(&errs, endings, nil); problem.ExitCode(err) != 103 ||
		!strings.Contains(errs.String(), "1 of 4 nodes succeeded; failed: b, c, d.") {
		t.Errorf("status %d: %s", problem.ExitCode(err), errs.String())
	}
	out.Reset()
	if err := newReported(&out).Close(); err != nil || out.String() != "[]\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// TestGrouped: the lines of a node are printed together, after its name, and the stored output is
// limited.
func TestGrouped(t *testing.T) {
	var out, errs bytes.Buffer
	c := three()
	if _, err := c.RunShown(t.Context(), newPrefixed(&out, &errs, c.Nodes, true), prints); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "a | one\na | two\n") || out.Len() > maxKeptBytes+1<<10 {
		t.Errorf("%d bytes are printed: %.200s", out.Len(), out.String())
	}
	if !regexp.MustCompile(`b \| … and \d+ more bytes, which are not shown\nb \| exit status 3\n`).MatchString(
		errs.String()) {
		t.Errorf("%s", errs.String())
	}
	if strings.Contains(regexp.MustCompile(`(?s)b \| .*b \| much\n`).FindString(out.String()), "a | ") {
		t.Error("the lines of two nodes are mixed")
	}
}

// TestEqualErrors: what is wrong on several nodes is printed once at the end, or at once for each if the
// nodes do not end.
func TestEqualErrors(t *testing.T) {
	c := &nodes.Group{Runners: map[string]host.Runner{}, Parallel: 1}
	for _, name := range []string{"cam1", "cam2", "cam3", "cam4", "db"} {
		c.Nodes = append(c.Nodes, &site.Node{Name: name})
		if name != "cam4" {
			status := len(name) // db differs
			c.Runners[name] = doer{do: func(context.Context, host.Command) error {
				return &host.RunError{Place: name, Status: status}
			}}
		}
	}
	for want, show := range map[string]func(*bytes.Buffer) nodes.Output{
		"on cam1, cam2, cam3: exit status 4\ncam4 | node cam4 does not run (orrery up cam4)\n" +
			"db   | exit status 2\n": func(errs *bytes.Buffer) nodes.Output {
			return newPrefixed(io.Discard, errs, c.Nodes, false)
		},
		"cam1 | exit status 4\ncam2 | exit status 4\ncam3 | exit status 4\n" +
			"cam4 | node cam4 does not run (orrery up cam4)\ndb   | exit status 2\n": func(errs *bytes.Buffer) nodes.Output {
			return newEndless(io.Discard, errs, c.Nodes)
		},
	} {
		var errs bytes.Buffer
		if _, err := c.RunShown(t.Context(), show(&errs), prints); err != nil || errs.String() != want {
			t.Errorf("%v\n%s", err, errs.String())
		}
	}
}

// TestInterrupted: Ctrl-C is not a failure of the nodes.
func TestInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	c := three()
	c.Timeout = 0
	time.AfterFunc(50*time.Millisecond, stop)
	var errs bytes.Buffer
	_, err := c.RunShown(ctx, newPrefixed(io.Discard, &errs, c.Nodes, false), prints)
	if problem.ExitCode(err) != int(problem.Interrupted) || !strings.Contains(err.Error(), "same command") ||
		!regexp.MustCompile(`(?m)^(on b, c: |c \| )interrupted$`).MatchString(errs.String()) {
		t.Errorf("%v\n%s", err, errs.String())
	}
}
