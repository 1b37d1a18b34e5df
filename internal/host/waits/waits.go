// Package waits waits for locks, reports their holders, and ends with the caller's context.
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

// A Held returns a description of the holder of a lock. It is called only when the description is
// reported.
type Held func() string

type key struct{}

// Telling returns a context in which waits are reported by say, instead of on standard error.
func Telling(ctx context.Context, say func(text string)) context.Context {
	return context.WithValue(ctx, key{}, say)
}

// Tell reports a wait.
func Tell(ctx context.Context, text string) {
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

// A wait is reported after tellAfter, and then at each tellInterval.
var (
	tellAfter    = time.Second // variables, so that tests can change them
	tellInterval = 30 * time.Second
	slowAfter    = 5 * time.Second
)

// Slow reports a text with the time passed until stop is called: after 5 s, and then at each
// tellInterval. It is for an operation that is fast unless a disk or another machine does not
// answer, and that cannot be interrupted.
func Slow(ctx context.Context, text string) (stop func()) {
	began, ended := time.Now(), make(chan struct{})
	go func() {
		for pause := slowAfter; ; pause = tellInterval {
			select {
			case <-ended:
				return
			case <-time.After(pause):
				Tell(ctx, fmt.Sprintf("%s, %d s", text, int(time.Since(began).Seconds())))
			}
		}
	}()
	return func() { close(ended) }
}

// For calls try until it succeeds or fails. The text wanted names what the caller waits for, as in
// "the lock of …". The function try returns the holder, or nil if it has succeeded or failed. If
// ctx ends first, For returns a problem that names the holder: Locked if the deadline has passed,
// otherwise Interrupted.
func For(ctx context.Context, wanted string, try func() (Held, error)) error {
	began, told := time.Now(), time.Time{}
	for {
		held, err := try()
		if held == nil {
			if !told.IsZero() && err == nil {
				Tell(ctx, fmt.Sprintf("has %s, after %s", wanted, time.Since(began).Round(100*time.Millisecond)))
			}
			return err
		}
		if waited := time.Since(began); told.IsZero() && waited >= tellAfter || !told.IsZero() &&
			time.Since(told) >= tellInterval {
			told = time.Now()
			Tell(ctx, "waits for "+wanted+": "+held())
		}
		select {
		case <-time.After(min(maxPause, max(minPause, time.Since(began)/64))):
		case <-ctx.Done():
			return givenUp(ctx, wanted, held)
		}
	}
}

func givenUp(ctx context.Context, wanted string, held Held) error {
	kind := problem.Interrupted
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		kind = problem.Locked
	}
	return problem.New(kind, "no longer waiting for %s: %s", wanted, held()).Because(context.Cause(ctx)).
		Try("wait for it, or end that process")
}

// Locked splits the error of a try: for a Locked problem, it returns a Held that names the holder.
// Other errors it returns unchanged.
func Locked(err error) (Held, error) {
	if problem.Exit(err) != int(problem.Locked) {
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
