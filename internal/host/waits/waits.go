// Package waits waits for locks: it reports who holds them, and ends with the caller's context. All
// waiting for locks goes through it.
package waits

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"orrery/internal/problem"
)

// A Held tells, in words, who has what is waited for. It is asked only when that is told.
type Held func() string

type key struct{}

// Telling returns a context with which waits are told by say, instead of on standard error.
func Telling(ctx context.Context, say func(text string)) context.Context {
	return context.WithValue(ctx, key{}, say)
}

// Tell tells of a wait.
func Tell(ctx context.Context, text string) {
	if say, ok := ctx.Value(key{}).(func(string)); ok {
		say(text)
		return
	}
	fmt.Fprintln(os.Stderr, "orrery: "+text)
}

// How long it takes at least, and at most, until something is tried again.
const (
	minPause = time.Millisecond
	maxPause = 50 * time.Millisecond
)

// A wait is told after a while, and then now and then.
var (
	tellAfter    = time.Second // variables, so that tests can change them
	tellInterval = 30 * time.Second
	slowAfter    = 5 * time.Second
)

// Slow tells a text, and for how long that has been so, until stop is called: after 5 s, and then
// now and then. It is for what takes no time unless a disk or another machine does not answer, and
// cannot be interrupted.
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

// For tries something until nobody else has what is wanted for it, which is named as in "the lock
// of …". Try returns who has it, or nil if it has been done or cannot be. When ctx ends first, the
// problem says who still had it: Locked if it was time that ended, else Interrupted.
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

// Locked parts what somebody who tried returns: a Locked problem tells who has what is waited for.
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
