package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"orrery/internal/host"
	"orrery/internal/lab/bundle"
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/place"
	"orrery/internal/lab/setting"
	"orrery/internal/lab/test"
)

// A gauge is a test with one figure that ends at once and records where and when it ran.
type gauge struct {
	mutex sync.Mutex
	done  []string
	fails string // setting in which it fails
	ill   string // setting in which Check fails, or "*" for all
	slow  time.Duration
}

func (g *gauge) Needs() test.Needs   { return test.Needs{} }
func (g *gauge) Time() time.Duration { return time.Second }
func (g *gauge) Figures() []test.Figure {
	return []test.Figure{{Name: "f", Unit: "s", Better: test.Less}}
}

func (g *gauge) Check(_ context.Context, t *test.Trial) error {
	if g.ill == "*" || g.ill == t.Near.Name {
		return errors.New("no room")
	}
	return nil
}

func (g *gauge) Run(ctx context.Context, t *test.Trial) (test.Result, error) {
	if g.fails == t.Near.Name && t.Copy == 0 {
		return test.Result{}, &host.RunError{Place: "here", Command: []string{"tool"}, Status: 1, Output: "no such luck"}
	}
	if err := t.Barrier(ctx); err != nil {
		return test.Result{}, err
	}
	select {
	case <-time.After(g.slow):
	case <-ctx.Done():
		return test.Result{}, ctx.Err()
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.done = append(g.done, fmt.Sprintf("%d %s %d", t.Round, t.Near.Name, t.Copy))
	return test.Result{Samples: []test.Sample{{Figure: "f", Value: 1}}}, nil
}

// A notebook keeps trials in memory.
type notebook struct {
	trials []bundle.Trial
	rounds int
	after  func(n int) // called with the number of trials
}

func (b *notebook) AppendTrial(t bundle.Trial) error {
	b.trials = append(b.trials, t)
	if b.after != nil {
		b.after(len(b.trials))
	}
	return nil
}
func (b *notebook) WriteOutput(string, []byte) error { return nil }
func (b *notebook) RoundDone(n int) error            { b.rounds = n; return nil }

// A listener records what it is told.
type listener struct {
	failed  []string
	renewed []int
	waited  int
}

func (l *listener) Renewing(n int)                { l.renewed = append(l.renewed, n) }
func (l *listener) Waiting(string, time.Duration) { l.waited++ }

// A closed watcher reports nothing except, for the given number of calls, that the host is in use.
type closed struct{ restless, begun int }

func (c *closed) Begin(context.Context) error { c.begun++; return nil }

func (*closed) Watch(*Unit, []*place.Place) func(test.Moved) []test.Label {
	return func(test.Moved) []test.Label { return nil }
}
func (c *closed) BusyReason(context.Context) (string, error) {
	if c.restless--; c.restless >= 0 {
		return "others", nil
	}
	return "", nil
}

func (l *listener) Round(int, int)                      {}
func (l *listener) Trial(string, string, time.Duration) {}
func (l *listener) Failed(unit, name string, err error) {
	l.failed = append(l.failed, unit+" "+name+": "+err.Error())
}

// nowhere is a Runner that does nothing.
type nowhere struct{ host.Local }

func (nowhere) Run(context.Context, host.Command) error { return nil }

func runOf(g *gauge, copies ...int) (*Run, *notebook, *listener) {
	e := &experiment.Experiment{
		Rounds: 10, Most: 12, Settings: []experiment.Setting{{Name: "veth"}, {Name: "kvm", Missing: "no engine"}},
		Tests: []experiment.Test{{Name: "g", Copies: copies, Test: g}},
	}
	ground := &setting.Places{Near: map[string][]*place.Place{}, Far: map[string]*place.Place{}}
	for _, name := range Settings(e) {
		for range slices.Max(copies) {
			ground.Near[name] = append(ground.Near[name], &place.Place{Name: name, Runner: nowhere{}, Dir: "/nowhere"})
		}
	}
	book, watch := &notebook{}, &listener{}
	return &Run{
		Experiment: e, Places: ground, Seed: 7, Recorder: book, Progress: watch,
		Watcher: &closed{}, Recreate: func(context.Context) (*setting.Places, error) { return ground, nil },
		More: func([]bundle.Trial) bool { return false }, Worth: func([]bundle.Trial, float64) float64 { return 0 },
	}, book, watch
}

func TestRounds(t *testing.T) {
	g := &gauge{}
	r, book, _ := runOf(g, 1)
	if err := r.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if book.rounds != 11 || len(book.trials) != 11*3 {
		t.Errorf("%d rounds, %d trials; want 11, 33", book.rounds, len(book.trials))
	}
	for round := 0; round < 10; round += 2 { // ABBA: each odd round is the reverse of the one before
		first, back := g.done[round*3:round*3+3], slices.Clone(g.done[round*3+3:round*3+6])
		slices.Reverse(back)
		for i := range first {
			_, one, _ := strings.Cut(first[i], " ")
			_, other, _ := strings.Cut(back[i], " ")
			if one != other {
				t.Errorf("rounds %d and %d: %v, %v", round, round+1, first, back)
			}
		}
	}
}

func TestMoreRounds(t *testing.T) {
	r, book, _ := runOf(&gauge{}, 1)
	r.More = func([]bundle.Trial) bool { return true }
	if err := r.Do(t.Context()); err != nil || book.rounds != 13 {
		t.Errorf("%d rounds: %v; want 13, the bound and the rehearsal", book.rounds, err)
	}
}

func TestCopies(t *testing.T) {
	g := &gauge{}
	r, book, _ := runOf(g, 1, 8)
	if err := r.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(book.trials) != 11*3*9 {
		t.Errorf("%d trials, want %d", len(book.trials), 11*3*9)
	}
}

// TestFailure: a test that fails in a setting is reported with its output and given up after three
// times, and the others continue.
func TestFailure(t *testing.T) {
	for _, copies := range []int{1, 8} {
		g := &gauge{fails: "veth"}
		r, book, watch := runOf(g, copies)
		r.Experiment.PerInstance = 100 // in new nodes it would be tried again
		if err := r.Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		failed, good := 0, 0
		for _, trial := range book.trials {
			switch {
			case trial.Error == "":
				good++
			case trial.Copy == 0:
				failed++
				if trial.Setting != "veth" || trial.Output != "no such luck" || !strings.Contains(trial.Error, "exit status 1") {
					t.Errorf("%+v", trial)
				}
			}
		}
		if failed != maxConsecutiveFailures || good != 22*copies || len(watch.failed) == 0 {
			t.Errorf("x%d: %d trials failed, %d did not; want %d, %d; told: %v", copies, failed, good, maxConsecutiveFailures,
				22*copies,
				watch.failed)
		}
	}
}

// TestGoOn: a run that is interrupted at any trial and resumed has all trials exactly once, except
// those of the interrupted test.
func TestGoOn(t *testing.T) {
	for end := 1; end < 33; end++ {
		r, book, _ := runOf(&gauge{}, 1)
		ctx, cancel := context.WithCancel(t.Context())
		book.after = func(n int) {
			if n == end {
				cancel()
			}
		}
		if err := r.Do(ctx); err == nil && end < 33 {
			t.Fatalf("ended after %d trials, it says that it is done", end)
		}
		again, rest, _ := runOf(&gauge{}, 1)
		again.Before = book.trials
		if err := again.Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, trial := range append(slices.Clone(book.trials), rest.trials...) {
			seen[fmt.Sprint(trial.Round, trial.Setting)] = true
		}
		if len(seen) != 33 || len(rest.trials) > 33-end+2 {
			t.Fatalf("ended after %d trials: %d in all, %d anew", end, len(seen), len(rest.trials))
		}
	}
}

func TestLimit(t *testing.T) {
	r, book, _ := runOf(&gauge{slow: time.Hour}, 1)
	r.Experiment.Tests[0].Limit = time.Millisecond
	if err := r.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := book.trials[0].Error; !strings.Contains(got, "more than 1ms") {
		t.Errorf("%q", got)
	}
}

func TestCheck(t *testing.T) {
	r, _, watch := runOf(&gauge{ill: "veth"}, 1)
	if err := r.Check(t.Context()); err != nil || len(watch.failed) != 1 {
		t.Errorf("one setting is ill: %v, told %v", err, watch.failed)
	}
	r, _, _ = runOf(&gauge{ill: "*"}, 1)
	if err := r.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("all settings are ill: %v", err)
	}
}

// TestWaitTimeout: the timeout of a trial is ten times its expected duration, ten times that with
// emulated processors, or the experiment's limit.
func TestWaitTimeout(t *testing.T) {
	fast, slow := &place.Place{}, &place.Place{Emulated: true}
	u := &Unit{Test: &experiment.Test{Test: &gauge{}}}
	if u.timeout(fast) != time.Minute || u.timeout(slow) != 10*time.Minute {
		t.Errorf("%v, emulated %v", u.timeout(fast), u.timeout(slow))
	}
	if u.Limit = time.Second; u.timeout(fast) != u.Limit || u.timeout(slow) != u.Limit {
		t.Errorf("with a limit %v, emulated %v", u.timeout(fast), u.timeout(slow))
	}
}
