package apply

import (
	"context"
	"errors"
	"sync"
	"time"

	"orrery/internal/host/waits"
	"orrery/internal/plan"
	"orrery/internal/problem"
)

// A Worker does single steps on one host. Run calls Do concurrently for steps that do not depend on
// each other.
type Worker interface {
	Do(ctx context.Context, s *plan.Step, say func(detail string)) error
}

// A Watcher receives the progress of a run. Its methods may be called from several goroutines.
type Watcher interface {
	Begin(s *plan.Step)
	Detail(s *plan.Step, text string)
	Waits(s *plan.Step, text string) // what the step waits for, or that it has it now
	End(s *plan.Step, err error)
}

// A Result lists what was done, what failed and what was skipped in a run.
type Result struct {
	Done    []*plan.Step // in the order in which they ended
	Failed  []Failure
	Skipped []*plan.Step // not started, because a step that they need failed or the run was interrupted
	Spans   map[int]Span // when each step that ran started and ended, by step number
}

// A Span is the time from the start of a step to its end.
type Span struct{ Began, Ended time.Time }

// A Failure is a step that did not succeed.
type Failure struct {
	Step *plan.Step
	Err  error
}

// OK reports whether every step was done.
func (r *Result) OK() bool { return len(r.Failed) == 0 && len(r.Skipped) == 0 }

// Run carries out a plan with at most parallel steps at once. It skips the steps that need a failed
// one and does all others. So one broken node does not keep the rest of a site down. When ctx ends,
// Run cancels the steps in progress and starts no others.
func Run(ctx context.Context, p *plan.Plan, workers map[string]Worker, watch Watcher, parallel int) *Result {
	r := &run{
		ctx: ctx, workers: workers, watch: watch, places: make(chan struct{}, max(1, parallel)),
		result: Result{Spans: map[int]Span{}}, missing: make([]int, len(p.Steps)), next: make([][]int, len(p.Steps)),
		steps: p.Steps, hopeless: make([]bool, len(p.Steps)),
	}
	for n, s := range p.Steps {
		r.missing[n] = len(s.Needs)
		for _, need := range s.Needs {
			r.next[need] = append(r.next[need], n)
		}
	}
	for n := range p.Steps {
		if len(p.Steps[n].Needs) == 0 {
			r.launch(n)
		}
	}
	r.all.Wait()
	return &r.result
}

type run struct {
	ctx     context.Context
	workers map[string]Worker
	watch   Watcher
	places  chan struct{}
	steps   []*plan.Step
	all     sync.WaitGroup

	mu       sync.Mutex
	missing  []int // number of steps that each step still waits for
	hopeless []bool
	next     [][]int // steps that wait for each step
	result   Result
}

func (r *run) launch(n int) {
	r.all.Add(1)
	go func() {
		defer r.all.Done()
		s := r.steps[n]
		select {
		case r.places <- struct{}{}:
			defer func() { <-r.places }()
		case <-r.ctx.Done():
		}
		if r.ctx.Err() != nil {
			r.ended(n, errSkipped)
			return
		}
		r.watch.Begin(s)
		began := time.Now()
		var err error
		if s.Kind == plan.BeginBatch {
			r.watch.Detail(s, s.Reason) // it does nothing: other steps wait for it
		} else if w, ok := r.workers[s.Host]; ok {
			ctx := waits.WithReporter(r.ctx, func(text string) { r.watch.Waits(s, text) })
			err = w.Do(ctx, s, func(text string) { r.watch.Detail(s, text) })
		} else {
			err = problem.New(problem.Failed, "no worker for host %q", s.Host)
		}
		r.spent(n, Span{began, time.Now()})
		r.watch.End(s, err)
		r.ended(n, err)
	}()
}

var errSkipped = errors.New("not started")

// spent records when a step began and ended.
func (r *run) spent(n int, t Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Spans[n] = t
}

// ended records how a step ended and starts the steps that waited only for it.
func (r *run) ended(n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.steps[n]
	switch {
	case errors.Is(err, errSkipped):
		r.result.Skipped = append(r.result.Skipped, s)
	case err != nil:
		r.result.Failed = append(r.result.Failed, Failure{s, err})
	default:
		r.result.Done = append(r.result.Done, s)
	}
	r.release(n, err != nil)
}

// release starts the steps that waited only for step n. If step n was not done, it skips them and
// their followers.
func (r *run) release(n int, failed bool) {
	for _, follower := range r.next[n] {
		r.missing[follower]--
		r.hopeless[follower] = r.hopeless[follower] || failed
		if r.missing[follower] > 0 {
			continue
		}
		if r.hopeless[follower] {
			r.result.Skipped = append(r.result.Skipped, r.steps[follower])
			r.release(follower, true)
			continue
		}
		r.launch(follower)
	}
}
