package waits

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"orrery/internal/problem"
)

// TestFor checks that a short wait is not reported, and that a long one is reported after a second,
// repeatedly, and at its end.
//
// Promise (Other users of the host): A wait for a lock names the holder after one second, and ends
// with its context; no lock is held while a user is asked. With host/waits.TestForEnds,
// host/holders.TestOf, apply/remote.TestWaits, internal.TestWaits, internal.TestLocks,
// control.TestThinking.
func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		began := time.Now()
		ctx := WithReporter(t.Context(), func(text string) {
			told = append(told, time.Since(began).Truncate(time.Second).String()+" "+text)
		})
		until := func(d time.Duration) func() (Holder, error) {
			began = time.Now()
			return func() (Holder, error) {
				if time.Since(began) < d {
					return func() string { return "ada has it" }, nil
				}
				return nil, nil
			}
		}
		if err := For(ctx, "the lock", until(900*time.Millisecond)); err != nil || told != nil {
			t.Errorf("a short wait ends with %v and is told as %q", err, told)
		}
		if err := For(ctx, "the lock", until(45*time.Second)); err != nil {
			t.Error(err)
		}
		want := "1s waits for the lock: ada has it|31s waits for the lock: ada has it|45s got the lock after 45s"
		if got := strings.Join(told, "|"); got != want {
			t.Errorf("a long wait is told as %q, not %q", got, want)
		}
	})
}

// TestSlow checks that a slow operation is reported after 5 s, and then at intervals until it ends.
func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		ctx := WithReporter(t.Context(), func(text string) { told = append(told, text) })
		for _, c := range []struct {
			long time.Duration
			want string
		}{{4 * time.Second, ""}, {40 * time.Second, "still so, 5 s|still so, 35 s"}} {
			stop := ReportSlow(ctx, "still so")
			time.Sleep(c.long)
			stop()
			time.Sleep(time.Hour)
			if got := strings.Join(told, "|"); got != c.want {
				t.Errorf("%s is told as %q, not %q", c.long, got, c.want)
			}
		}
	})
}

// TestForEnds checks that a wait ends with its context, with an error that names the holder. Any
// other error ends it at once.
func TestForEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := WithReporter(t.Context(), func(string) {})
		busy := func() (Holder, error) { return HolderOf(problem.New(problem.Locked, "ada runs it")) }
		limited, cancel := context.WithTimeoutCause(ctx, 5*time.Second, errors.New("enough"))
		defer cancel()
		began := time.Now()
		err := For(limited, "the lock", busy)
		if problem.ExitCode(err) != int(problem.Locked) ||
			!strings.Contains(err.Error(), "no longer waiting for the lock: ada runs it: enough") ||
			time.Since(began) > 6*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		stopped, stop := context.WithCancel(ctx)
		time.AfterFunc(time.Hour, stop)
		if err := For(stopped, "the lock", busy); problem.ExitCode(err) != int(problem.Interrupted) ||
			!errors.Is(err, context.Canceled) {
			t.Errorf("interrupted: %v", err)
		}
		broken := errors.New("broken")
		if err := For(ctx, "the lock", func() (Holder, error) { return HolderOf(broken) }); !errors.Is(err, broken) {
			t.Errorf("what fails: %v", err)
		}
	})
}
