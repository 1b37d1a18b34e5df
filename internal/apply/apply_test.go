package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"orrery/internal/plan"
)

// slow is a worker whose steps take a second, and fail if fails has an error for them.
type slow struct {
	mu         sync.Mutex
	now, most  int
	fails      map[string]error
	begun      []string
	ignoresCtx bool
}

func (w *slow) Do(ctx context.Context, s *plan.Step, say func(string)) error {
	w.mu.Lock()
	w.now++
	w.most = max(w.most, w.now)
	w.begun = append(w.begun, s.Subject)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.now--
	}()
	say("at work")
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		if !w.ignoresCtx {
			return context.Cause(ctx)
		}
	}
	return w.fails[s.Subject]
}

// notes is a watcher that records its calls.
type notes struct {
	mu  sync.Mutex
	all []string
}

func (n *notes) note(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, fmt.Sprintf(format, args...))
}
func (n *notes) Begin(s *plan.Step)               { n.note("begin %s", s.Subject) }
func (n *notes) Detail(s *plan.Step, text string) { n.note("%s: %s", s.Subject, text) }
func (n *notes) Waits(s *plan.Step, text string)  { n.note("%s %s", s.Subject, text) }
func (n *notes) End(s *plan.Step, err error)      { n.note("end %s %v", s.Subject, err) }

// planOf returns a plan of steps a, b, c, … with these needs.
func planOf(needs ...[]int) *plan.Plan {
	p := &plan.Plan{}
	for n, need := range needs {
		p.Steps = append(p.Steps, &plan.Step{N: n, Host: "sv1", Subject: string(rune('a' + n)), Needs: need})
	}
	return p
}

func subjects(steps []*plan.Step) []string {
	var all []string
	for _, s := range steps {
		all = append(all, s.Subject)
	}
	slices.Sort(all)
	return all
}

func TestBound(t *testing.T) {
	for _, parallel := range []int{0, 1, 3, 100} {
		synctest.Test(t, func(t *testing.T) {
			w := &slow{}
			begun := time.Now()
			r := Run(t.Context(), planOf(make([][]int, 10)...), map[string]Worker{"sv1": w}, &notes{}, parallel)
			bound := min(max(parallel, 1), 10)
			if !r.OK() || len(r.Done) != 10 || w.most != bound {
				t.Errorf("parallel %d: %d done, at most %d at once", parallel, len(r.Done), w.most)
			}
			if took, want := time.Since(begun), time.Duration((10+bound-1)/bound)*time.Second; took != want {
				t.Errorf("parallel %d: it took %v, not %v", parallel, took, want)
			}
		})
	}
}

func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slow{}
		begun := time.Now()
		// a diamond, and a step that needs nothing
		r := Run(t.Context(), planOf(nil, []int{0}, []int{0}, []int{1, 2}, nil), map[string]Worker{"sv1": w}, &notes{}, 8)
		if !r.OK() || w.begun[4] != "d" || time.Since(begun) != 3*time.Second {
			t.Errorf("begun %q in %v", w.begun, time.Since(begun))
		}
	})
}

func TestFollowersOfFailureAreSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		w := &slow{fails: map[string]error{"b": broken}}
		n := &notes{}
		// a <- b <- c <- d, a <- e, (d, e) <- f, g
		r := Run(t.Context(), planOf(nil, []int{0}, []int{1}, []int{2}, []int{0}, []int{3, 4}, nil),
			map[string]Worker{"sv1": w}, n, 8)
		if got := subjects(r.Done); !slices.Equal(got, []string{"a", "e", "g"}) {
			t.Errorf("done: %q", got)
		}
		if got := subjects(r.Skipped); !slices.Equal(got, []string{"c", "d", "f"}) {
			t.Errorf("skipped: %q", got)
		}
		if len(r.Failed) != 1 || !errors.Is(r.Failed[0].Err, broken) || r.OK() {
			t.Errorf("failed: %v", r.Failed)
		}
		if slices.Contains(n.all, "begin c") || !slices.Contains(n.all, "end b broken") ||
			!slices.Contains(n.all, "a: at work") {
			t.Errorf("told: %q", n.all)
		}
	})
}

func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		r := Run(ctx, planOf(make([][]int, 6)...), map[string]Worker{"sv1": &slow{}}, &notes{}, 2)
		if len(r.Done) != 2 || len(r.Failed) != 2 || len(r.Skipped) != 2 {
			t.Errorf("%d done, %d failed, %d skipped", len(r.Done), len(r.Failed), len(r.Skipped))
		}
		for _, f := range r.Failed {
			if !errors.Is(f.Err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", f.Step.Subject, f.Err)
			}
		}
	})
}

// A step that succeeds although it was cancelled is done. The steps that need it are not started.
func TestCancelledTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		r := Run(ctx, planOf(nil, []int{0}, []int{1}), map[string]Worker{"sv1": &slow{ignoresCtx: true}}, &notes{}, 2)
		if got := subjects(r.Done); !slices.Equal(got, []string{"a"}) || len(r.Failed) != 0 || len(r.Skipped) != 2 {
			t.Errorf("done %q, %d failed, %d skipped", got, len(r.Failed), len(r.Skipped))
		}
	})
}

func TestEmpty(t *testing.T) {
	if r := Run(t.Context(), &plan.Plan{}, nil, &notes{}, 4); !r.OK() {
		t.Error("an empty plan is not done")
	}
}

// The steps of a host without a worker fail, and all others are done.
func TestNoWorker(t *testing.T) {
	p := planOf(nil, nil)
	p.Steps[1].Host = "sv2"
	synctest.Test(t, func(t *testing.T) {
		r := Run(t.Context(), p, map[string]Worker{"sv1": &slow{}}, &notes{}, 4)
		if len(r.Done) != 1 || len(r.Failed) != 1 || r.Failed[0].Step.Host != "sv2" {
			t.Errorf("%d done, failed %v", len(r.Done), r.Failed)
		}
	})
}

// A chain of any length is skipped completely.
func TestLongPlan(t *testing.T) {
	const steps = 100_000
	p := &plan.Plan{}
	for n := range steps {
		s := &plan.Step{N: n, Host: "sv1", Subject: "s"}
		if n > 0 {
			s.Needs = []int{n - 1}
		}
		p.Steps = append(p.Steps, s)
	}
	w := failing{}
	if r := Run(t.Context(), p, map[string]Worker{"sv1": w}, &notes{}, 4); len(r.Skipped) != steps-1 {
		t.Errorf("%d skipped", len(r.Skipped))
	}
}

type failing struct{}

func (failing) Do(context.Context, *plan.Step, func(string)) error { return errors.New("no") }
