// Package waits acquires locks, reports their holders, and ends with the caller's context.
//
// All waiting for locks goes through it.
package waits

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"orrery/internal/problem"
)

// A Holder returns a description of the holder of a lock. It is called only when the description is
// reported.
type Holder func() string

type key struct{}

// WithReporter returns a context in which waits are reported by say, instead of on standard error.
func WithReporter(ctx context.Context, say func(text string)) context.Context {
	return context.WithValue(ctx, key{}, say)
}

// Report reports a wait.
func Report(ctx context.Context, text string) {
	if say, ok := ctx.Value(key{}).(func(string)); ok {
		say(text)
		return
	}
	fmt.Fprintln(os.Stderr, "orrery: "+text)
}

// The minimum and maximum time between two tries.
const (
	minPause = time.Millisecond
	maxPause = 50 * time.Millisecond
)

// A wait is reported after reportAfter, and then at each reportInterval.
var (
	reportAfter    = time.Second // variables, so that tests can change them
	reportInterval = 30 * time.Second
	slowAfter      = 5 * time.Second
)

// ReportSlow reports a text with the time passed until stop is called: after 5 s, and then at each
// reportInterval. It is for an operation that is fast unless a disk or another machine does not
// answer, and that cannot be interrupted.
func ReportSlow(ctx context.Context, text string) (stop func()) {
	began, ended := time.Now(), make(chan struct{})
	go func() {
		for pause := slowAfter; ; pause = reportInterval {
			select {
			case <-ended:
				return
			case <-time.After(pause):
				Report(ctx, fmt.Sprintf("%s, %d s", text, int(time.Since(began).Seconds())))
			}
		}
	}()
	return func() { close(ended) }
}

// For calls try until it succeeds or fails. The text wanted names what the caller waits for, as in
// "the lock of …". The function try returns the holder, or nil if it has succeeded or failed. If
// ctx ends first, For returns a problem that names the holder: Locked if the deadline has passed,
// otherwise Interrupted.
func For(ctx context.Context, wanted string, try func() (Holder, error)) error {
	began, told := time.Now(), time.Time{}
	for {
		held, err := try()
		if held == nil {
			if !told.IsZero() && err == nil {
				Report(ctx, fmt.Sprintf("got %s after %s", wanted, time.Since(began).Round(100*time.Millisecond)))
			}
			return err
		}
		if waited := time.Since(began); told.IsZero() && waited >= reportAfter || !told.IsZero() &&
			time.Since(told) >= reportInterval {
			told = time.Now()
			Report(ctx, "waits for "+wanted+": "+held())
		}
		select {
		case <-time.After(min(maxPause, max(minPause, time.Since(began)/64))):
		case <-ctx.Done():
			return timeoutError(ctx, wanted, held)
		}
	}
}

func timeoutError(ctx context.Context, wanted string, held Holder) error {
	kind := problem.Interrupted
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		kind = problem.Locked
	}
	return problem.New(kind, "no longer waiting for %s: %s", wanted, held()).Because(context.Cause(ctx)).
		Try("wait for it, or end that process")
}

// HolderOf returns the Holder that a Locked problem names. It returns other errors unchanged.
func HolderOf(err error) (Holder, error) {
	if problem.ExitCode(err) != int(problem.Locked) {
		return nil, err
	}
	return func() string {
		var p *problem.Problem
		if errors.As(err, &p) {
			return p.What
		}
		return err.Error()
	}, nil
}
