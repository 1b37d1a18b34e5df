package test

import (
	"context"
	"errors"
	"testing"
	"time"

	"orrery/internal/host"
	"orrery/internal/lab/place"
)

// slow is a place where commands take a minute to start.
type slow struct{ host.Local }

func (s slow) Run(ctx context.Context, c host.Command) error {
	c.Args = []string{"sleep", "60"}
	return s.Local.Run(ctx, c)
}

// TestMeasureEnds: a trial that is cancelled before its command is ready, or at the barrier, ends
// at once.
func TestMeasureEnds(t *testing.T) {
	for name, runner := range map[string]host.Runner{"before it is ready": slow{}, "at the barrier": host.Local{}} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		trial := &Trial{Near: &place.Place{Runner: runner}, Barrier: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		done := make(chan error, 1)
		go func() {
			_, _, err := trial.Measure(ctx, "true")
			done <- err
		}()
		select {
		case err := <-done:
			if err == nil {
				t.Errorf("%s: no error", name)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s: it hangs", name)
		}
		cancel()
	}
}

func TestMeasure(t *testing.T) {
	trial := &Trial{Near: &place.Place{Runner: host.Local{}}, Barrier: func(context.Context) error { return nil }}
	out, span, err := trial.Measure(t.Context(), "echo", "a word")
	if err != nil || string(out) != "a word\n" || !span.Ended.After(span.Began) {
		t.Errorf("%q, %v, %v", out, span, err)
	}
	var run *host.RunError
	if _, _, err := trial.Measure(t.Context(), "false"); !errors.As(err, &run) || run.Status != 1 {
		t.Errorf("a command that fails: %v", err)
	}
}
