package testrun

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"orrery/internal/host"
	"orrery/internal/site"
)

// scripted is a node with a given result for each command.
type scripted struct {
	host.Runner
	does map[string]func(ctx context.Context, c host.Command) error
}

func (s scripted) Run(ctx context.Context, c host.Command) error { return s.does[c.Args[0]](ctx, c) }

func place(does map[string]func(ctx context.Context, c host.Command) error) NodeAccess {
	return NodeAccess{
		In: func(node string) (host.Runner, error) {
			if node == "gone" {
				return nil, errors.New("node gone does not run")
			}
			return scripted{does: does}, nil
		},
		Env:    func(t site.Test) []string { return []string{"ORRERY_TEST=" + t.Name} },
		Redact: func(text string) string { return strings.ReplaceAll(text, "hunter2", "<secret pw>") },
	}
}

func exits(status int) error {
	return &host.RunError{Place: "n", Command: []string{"x"}, Status: status}
}

func TestRun(t *testing.T) {
	does := map[string]func(ctx context.Context, c host.Command) error{
		"good": func(_ context.Context, c host.Command) error {
			fmt.Fprintf(c.Stdout, "user %s, %s, hunter2\n", c.User, c.Env[0])
			return nil
		},
		"bad":     func(_ context.Context, c host.Command) error { fmt.Fprintln(c.Stderr, "no sample"); return exits(3) },
		"missing": func(context.Context, host.Command) error { return exits(127) },
		"slow":    func(ctx context.Context, _ host.Command) error { <-ctx.Done(); return exits(-1) },
	}
	test := func(name, node string) site.Test {
		return site.Test{Name: name, Node: node, Command: []string{name}, User: "u", Timeout: 20 * time.Millisecond}
	}
	var told []string
	all := Run(t.Context(), []site.Test{test("good", "n"), test("bad", "n"), test("missing", "n"), test("slow", "n"),
		test("good", "gone")},
		place(does), func(r Result) { told = append(told, r.Name) })
	want := []Result{
		{Name: "good", Node: "n", Outcome: Passed, Output: "user u, ORRERY_TEST=good, <secret pw>\n"},
		{Name: "bad", Node: "n", Outcome: Failed, Reason: "exit status 3", Output: "no sample\n"},
		{Name: "missing", Node: "n", Outcome: Errored, Reason: "n: x: exit status 127"},
		{Name: "slow", Node: "n", Outcome: Failed, Reason: "not done within 20ms"},
		{Name: "good", Node: "gone", Outcome: Errored, Reason: "node gone does not run"},
	}
	for i := range want {
		all[i].Took = 0
		if all[i] != want[i] {
			t.Errorf("got %+v, want %+v", all[i], want[i])
		}
	}
	if len(all) != len(want) || len(told) != len(want) {
		t.Errorf("%d results, told %v", len(all), told)
	}
}

// TestInterrupted: tests that have not started when the run is interrupted are reported as such.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	does := map[string]func(ctx context.Context, c host.Command) error{
		"first": func(_ context.Context, _ host.Command) error { cancel(errors.New("Ctrl-C")); return exits(-1) },
	}
	first := site.Test{Name: "first", Command: []string{"first"}, Timeout: time.Minute}
	all := Run(ctx, []site.Test{first, {Name: "second"}}, place(does), func(Result) {})
	if all[0].Outcome != Errored || all[0].Reason != "Ctrl-C" || all[1].Outcome != Errored ||
		all[1].Reason != "not started: Ctrl-C" {
		t.Errorf("got %+v", all)
	}
}

func TestJUnit(t *testing.T) {
	r := &Report{
		Site: "karoo", Host: "h", Began: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Took:       90*time.Second + 4*time.Millisecond,
		Properties: [][2]string{{"release", "701"}, {"layers", "a & b"}},
		Results: []Result{
			{Name: "one", Node: "portal", Outcome: Passed, Took: 1500 * time.Microsecond,
				Output: "\x1b[31mred\x1b[0m <tag> ]]> \x00\u202e\r\n\ufffe"},
			{Name: "two", Node: "db", Outcome: Failed, Reason: "exit status 1\nmore", Output: "x"},
			{Name: "twin", Outcome: Errored, Reason: "it does not come up"},
			{Name: "four", Node: "n", Outcome: Skipped, Reason: "its node is not in the twin"},
		},
	}
	var b bytes.Buffer
	if err := r.WriteJUnit(&b); err != nil {
		t.Fatal(err)
	}
	var back xmlSuites
	if err := xml.Unmarshal(b.Bytes(), &back); err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	s := back.Suite
	if back.Tests != 4 || s.Failures != 1 || s.Errors != 1 || s.Skipped != 1 || s.Time != "90.004" ||
		s.Timestamp != "2026-03-01T12:00:00" || len(s.Properties) != 2 {
		t.Errorf("suite %+v", s)
	}
	if c := s.Cases[0]; c.Class != "karoo.portal" || c.Time != "0.002" ||
		c.Output.Text != "red <tag> ]]> \\x00\\u202e\n\\ufffe" || c.Failure != nil || c.Error != nil {
		t.Errorf("first %+v", c)
	}
	if c := s.Cases[1]; c.Failure == nil || c.Failure.Message != "exit status 1" ||
		c.Failure.Text != "exit status 1\nmore" {
		t.Errorf("second %+v", c)
	}
	if s.Cases[2].Error == nil || s.Cases[3].Skipped == nil || s.Cases[2].Class != "karoo" {
		t.Errorf("others %+v", s.Cases[2:])
	}
	if r.OK() || r.Summary() != "karoo: 1 of 3 tests passed, 1 failed, 1 could not be run, 1 skipped, in 1m30s." {
		t.Error(r.Summary())
	}
}

// TestLongOutput: the beginning and the end of a very long output are kept.
func TestLongOutput(t *testing.T) {
	var o output
	fmt.Fprintln(&o, "begin")
	for range 5000 {
		o.Write(bytes.Repeat([]byte("0123456789abcde\n"), 20))
	}
	fmt.Fprint(&o, "end")
	text := o.String()
	if len(text) > 2*maxKeptBytes+100 || !strings.HasPrefix(text, "begin\n") || !strings.HasSuffix(text, "end") ||
		!strings.Contains(text, "bytes are left out here") {
		t.Errorf("%d bytes", len(text))
	}
}
