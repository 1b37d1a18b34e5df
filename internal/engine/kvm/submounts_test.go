package kvm

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/problem"
)

// A liar is a guest that says what it likes when it is told to let go of volumes, and ends as it likes.
type liar struct {
	host.Runner
	says   string
	times  int
	status int
	never  bool // it does not end by itself
}

func (l liar) Run(ctx context.Context, c host.Command) error {
	for range l.times {
		if _, err := io.WriteString(c.Stdout, l.says); err != nil {
			return err
		}
	}
	if l.never {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	if l.status != 0 {
		return &host.RunError{Place: "db", Command: c.Args, Status: l.status}
	}
	return nil
}

// TestForgetLies: what a guest says of who uses a volume is bounded, and text; nobody waits for it longer than he would; and any other end than the one that is asked for
// says that it did not do as it was told.
func TestForgetLies(t *testing.T) {
	for name, c := range map[string]struct {
		in   liar
		want string
	}{
		"honest":    {liar{says: "rows (process 7) with /srv/x\n", times: 1, status: inUse}, "a volume is in use by rows (process 7) with /srv/x"},
		"nobody":    {liar{status: inUse}, "in use by something that the guest's kernel does not name"},
		"hostile":   {liar{says: "\x1b[2Jall is well\u202e\n", times: 1, status: inUse}, `\x1b[2Jall is well\u202e`},
		"flood":     {liar{says: strings.Repeat("x", 1<<10), times: 1 << 10, status: inUse}, "volume"},
		"fails":     {liar{status: 1}, "its guest does not change its volumes"},
		"a signal":  {liar{status: 137}, "its guest does not change its volumes"},
		"never":     {liar{never: true}, "its guest does not change its volumes"},
		"says done": {liar{says: "whatever", times: 1}, ""}, // the host looks for itself, when it unmounts
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if name != "never" {
			ctx = t.Context()
		}
		s := &remounting{m: machine{ref: engine.Ref{Site: "s", Name: "db"}}, in: c.in}
		err := s.forget(ctx, []string{"/srv/x"})
		cancel()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && (problem.Exit(err) != int(problem.Failed) || len(err.Error()) > 3*mostUsers || strings.ContainsAny(err.Error(), "\x1b\u202e")) {
			t.Errorf("%s: %d bytes, status %d: %.200q", name, len(err.Error()), problem.Exit(err), err)
		}
	}
	s := &remounting{m: machine{ref: engine.Ref{Site: "s", Name: "db"}}, in: liar{status: 1}}
	var run *host.RunError
	if err := s.find(t.Context(), []string{"/srv/x"}); !errors.As(err, &run) || !strings.Contains(err.Error(), "node db: its guest does not change its volumes") {
		t.Error(err)
	}
}
