// Package testrun runs the tests that a site declares. Each test runs in the node that it names.
// The report can be read by continuous integration tools.
package testrun

import (
	"context"
	"errors"
	"fmt"
	"time"

	"orrery/internal/host"
	"orrery/internal/site"
)

// An Outcome is the outcome of a test.
type Outcome string

// The outcomes.
const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"  // its command failed
	Errored Outcome = "broken"  // it could not be run to its end
	Skipped Outcome = "skipped" // its node was left out on purpose
)

// A Result is the result of one test.
type Result struct {
	Name    string
	Node    string
	Outcome Outcome
	Reason  string // why it did not pass
	Output  string
	Took    time.Duration
}

// A NodeAccess provides access to nodes and redacts secrets.
type NodeAccess struct {
	In     func(node string) (host.Runner, error)
	Env    func(t site.Test) []string
	Redact func(string) string
}

// Run runs tests in the order in which they are declared. Tests that do not start because ctx is
// cancelled are broken.
func Run(ctx context.Context, tests []site.Test, p NodeAccess, told func(Result)) []Result {
	var all []Result
	for _, t := range tests {
		r := runOne(ctx, t, p)
		all = append(all, r)
		told(r)
	}
	return all
}

func runOne(ctx context.Context, t site.Test, p NodeAccess) Result {
	r := Result{Name: t.Name, Node: t.Node, Outcome: Errored}
	if ctx.Err() != nil {
		r.Reason = "not started: " + context.Cause(ctx).Error()
		return r
	}
	in, err := p.In(t.Node)
	if err != nil {
		r.Reason = p.Redact(err.Error())
		return r
	}
	late := fmt.Errorf("not done within %s", t.Timeout)
	within, cancel := context.WithTimeoutCause(ctx, t.Timeout, late)
	defer cancel()
	var out output
	began := time.Now()
	err = in.Run(within, host.Command{Args: t.Command, Env: p.Env(t), User: t.User, Stdout: &out, Stderr: &out})
	r.Took, r.Output = time.Since(began), p.Redact(out.String())
	var run *host.RunError
	switch {
	case err == nil:
		r.Outcome = Passed
	case within.Err() != nil:
		r.Reason = context.Cause(within).Error()
		if errors.Is(context.Cause(within), late) {
			r.Outcome = Failed // the site must meet the time limit
		}
	case errors.As(err, &run) && run.Status > 0 && run.Status != notFound && run.Status != notExecutable:
		r.Outcome, r.Reason = Failed, fmt.Sprintf("exit status %d", run.Status)
	default:
		r.Reason = p.Redact(err.Error())
	}
	return r
}

// Exit statuses of shells and similar programs for a program that is not executable or does not
// exist.
const (
	notExecutable = 126
	notFound      = 127
)
