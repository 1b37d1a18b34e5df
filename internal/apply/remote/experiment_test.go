package remote_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"orrery/internal/apply/remote"
	"orrery/internal/problem"
)

// A benched machine can run experiments.
type benched struct {
	*machine
	measure func(ctx context.Context, x remote.Experiment, tell func(string), to io.Writer) error
}

func (b benched) Measure(ctx context.Context, x remote.Experiment, tell func(string), to io.Writer) error {
	return b.measure(ctx, x, tell, to)
}

// TestMeasure: progress is reported during a run, and the results arrive even if the caller has
// stopped it.
func TestMeasure(t *testing.T) {
	p := newPair(t)
	x := remote.Experiment{Name: "x", Text: []byte("y"), Rounds: 7, By: "ada"}
	if err := p.link.Measure(t.Context(), x, nil, nil); err == nil ||
		!strings.Contains(err.Error(), "this host does not run experiments") {
		t.Errorf("a machine without a bench: %v", err)
	}
	large := strings.Repeat("z", 200_000)
	l := p.to(benched{p.machine, func(ctx context.Context, got remote.Experiment, tell func(string), to io.Writer) error {
		if string(got.Text) != "y" || got.Rounds != 7 || got.By != "ada" {
			t.Errorf("it is asked for %+v", got)
		}
		tell("begun")
		<-ctx.Done()
		_, err := io.WriteString(to, large)
		return errors.Join(err, problem.New(problem.Interrupted, "ended"))
	}}, "1")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var came bytes.Buffer
	err := l.Measure(ctx, x, func(text string) error {
		if text != "begun" {
			t.Errorf("it tells %q", text)
		}
		cancel()
		return nil
	}, &came)
	if !problem.Is(err, problem.Interrupted) || came.String() != large {
		t.Errorf("%d bytes came: %v", came.Len(), err)
	}
}

// TestMeasureWithoutEnd: if a host does not end a run, it is given up after endTimeout.
func TestMeasureWithoutEnd(t *testing.T) {
	t.Cleanup(remote.LetGo(50 * time.Millisecond))
	p := newPair(t)
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	l := p.to(benched{p.machine, func(_ context.Context, _ remote.Experiment, tell func(string), _ io.Writer) error {
		tell("begun")
		<-over
		return nil
	}}, "1")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := l.Measure(ctx, remote.Experiment{}, func(string) error { cancel(); return nil },
		io.Discard); !problem.Is(err, problem.Interrupted) || !strings.Contains(err.Error(), "the host did not report the end of the run") {
		t.Error(err)
	}
}
