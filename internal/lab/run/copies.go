package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"orrery/internal/host"
	"orrery/internal/lab/bundle"
	"orrery/internal/lab/place"
	"orrery/internal/lab/test"
	"orrery/internal/problem"
)

// runCopies runs a trial in all copies of a setting at once. If one fails, the others are cancelled:
// their values would not be those of so many concurrent copies.
func (r *Run) runCopies(ctx context.Context, round int, u *Unit, name string) []bundle.Trial {
	near := r.Places.Near[name]
	if len(near) < u.Copies {
		now := time.Now()
		return []bundle.Trial{{Round: round, Instance: r.instance, Slot: r.slot, Setting: name, Test: u.Title, Began: now,
			Ended: now,
			Error: fmt.Sprintf("setting %s can have %d nodes at once, not %d: each needs a part of the host of its own",
				name, len(near), u.Copies)}}
	}
	timeout := u.timeout(near[0])
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, problem.New(problem.Failed, "it took more than %s", timeout).
		Try("increase limit in the test"))
	defer cancel()
	gate := newBarrier(u.Copies)
	all := make([]bundle.Trial, u.Copies)
	seen := r.Watcher.Watch(u, near[:u.Copies])
	var group sync.WaitGroup
	for i := range all {
		group.Go(func() {
			all[i] = r.runTrial(ctx, &test.Trial{
				Round: round, Near: near[i], Far: r.Places.Far[name], Copy: i, Of: u.Copies, Barrier: gate.wait,
				Keep: func(file string, content []byte) error {
					return r.Recorder.WriteOutput(path.Join("output", fmt.Sprintf("%d-%s-%s-%d", round, slug(u.Title), slug(name), i),
						file),
						content)
				},
			}, u)
			if all[i].Error != "" {
				cancel()
			}
		})
	}
	group.Wait()
	var moved test.Moved
	for _, t := range all {
		moved = moved.Add(t.Moved)
	}
	labels := seen(moved)
	for i := range all {
		all[i].Labels = mergeLabels(all[i].Labels, labels)
	}
	return all
}

// mergeLabels adds labels, except those that the test itself has added.
func mergeLabels(labels, more []test.Label) []test.Label {
	for _, l := range more {
		if !slices.ContainsFunc(labels, func(label test.Label) bool {
			return label.Name == l.Name && label.Where == l.Where
		}) {
			labels = append(labels, l)
		}
	}
	return labels
}

// runTrial runs one trial in one place.
func (r *Run) runTrial(ctx context.Context, t *test.Trial, u *Unit) bundle.Trial {
	trial := bundle.Trial{Round: t.Round, Instance: r.instance, Slot: r.slot, Setting: t.Near.Name,
		Emulated: t.Near.Emulated, Test: u.Title, Copy: t.Copy, Began: time.Now()}
	result, err := u.Run(ctx, t)
	trial.Ended = time.Now()
	if err == nil {
		err = u.checkFigures(result)
	}
	if err == nil && result.Detail != nil {
		trial.Detail, err = json.Marshal(result.Detail)
	}
	trial.Labels, trial.Moved = result.Labels, result.Moved
	if err != nil {
		trial.Error, trial.Output = explain(ctx, err)
		return trial
	}
	trial.Samples, trial.Series = result.Samples, result.Series
	return trial
}

// checkFigures returns an error if the result has a figure that the test did not announce.
func (u *Unit) checkFigures(result test.Result) error {
	promised := map[string]bool{}
	for _, f := range u.Figures() {
		promised[f.Name] = true
	}
	for _, s := range result.Samples {
		if !promised[s.Figure] {
			return problem.New(problem.Failed, "test %s returned the figure %q, which it had not announced", u.Name, s.Figure)
		}
	}
	return nil
}

// emulationFactor is the factor on the timeout of a trial with emulated processors. It allows for copies,
// which share the host's processors.
const emulationFactor = 10

// timeout returns the timeout of a trial in a place.
func (u *Unit) timeout(in *place.Place) time.Duration {
	timeout := max(time.Minute, 10*u.Time())
	switch {
	case u.Limit > 0:
		return u.Limit
	case in.Emulated:
		return emulationFactor * timeout
	}
	return timeout
}

// explain returns why a trial failed and, if a command failed, the end of its output.
func explain(ctx context.Context, err error) (why, output string) {
	var run *host.RunError
	if errors.As(err, &run) {
		output = run.Output
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	var missing *exec.Error
	if errors.As(err, &missing) {
		return fmt.Sprintf("%s cannot be run: %v", missing.Name, missing.Err), output
	}
	return err.Error(), output
}

// slug makes a file name from words.
func slug(words string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == '/' {
			return '_'
		}
		return r
	}, words)
}

// Check calls the tests' checks in every place before the first round. A failure in all settings is
// an error. A failure in some settings is reported to Progress, and they are tried nevertheless.
func (r *Run) Check(ctx context.Context) error {
	var all problem.List
	for _, u := range Units(r.Experiment) {
		names := r.settings(u)
		var failed []error
		for _, name := range names {
			if err := r.check(ctx, u, name); err != nil {
				failed = append(failed, err)
				r.Progress.Failed(u.Title, name, err)
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
		if len(failed) == len(names) {
			all = append(all, problem.New(problem.Unable, "test %s cannot run in any setting", u.Title).Because(failed[0]))
		}
	}
	if len(all) > 0 {
		return all
	}
	return nil
}

// checkTimeout limits the preparation of a place by a test, which may write files of many GiB.
const checkTimeout = time.Hour

func (r *Run) check(ctx context.Context, u *Unit, name string) error {
	near := r.Places.Near[name]
	ctx, cancel := context.WithTimeoutCause(ctx, checkTimeout,
		problem.New(problem.Failed, "the place was not ready within %s", checkTimeout))
	defer cancel()
	for i := range min(u.Copies, len(near)) {
		if err := makeDir(ctx, near[i]); err != nil {
			return err
		}
		t := &test.Trial{Near: near[i], Far: r.Places.Far[name], Copy: i, Of: u.Copies, Barrier: newBarrier(1).wait,
			Keep: func(string, []byte) error { return nil }}
		if err := u.Check(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// makeDir creates the work directory of a place.
func makeDir(ctx context.Context, p *place.Place) error {
	_, err := place.Output(ctx, p, "/bin/mkdir", "-p", p.Dir)
	return err
}
