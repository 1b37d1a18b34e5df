package fake

import (
	"context"
	"errors"
	"sync"
	"time"
)

// The errors of injected failures, unless the test sets another.
var (
	ErrInjected = errors.New("injected failure")
	ErrCrashed  = errors.New("injected interruption")
	ErrKilled   = errors.New("injected kill: nothing works until Revive")
)

// Faults are the failures and delays that a test injects into a fake engine or host, and the record
// of all calls. Methods are those of engine.Engine and engine.Replacer (such as "Create"), and the
// kinds of steps that concern no node (such as "network"). Subjects are nodes, networks and layers.
// "" stands for any method or subject.
type Faults struct {
	mu     sync.Mutex
	orders []*fault
	calls  []string
	killIn int // operations until the kill, or 0 if none is planned
	dead   bool
	death  chan struct{} // closed when dead is set
}

type fault struct {
	method, subject string
	times           int
	err             error
	half            bool
	delay           time.Duration
}

// Fail makes a method fail for a subject the given number of times, before it has done anything. If
// err is nil, it is ErrInjected.
func (f *Faults) Fail(method, subject string, times int, err error) {
	if err == nil {
		err = ErrInjected
	}
	f.put(&fault{method: method, subject: subject, times: times, err: err})
}

// Crash makes a method fail for a subject half way, the given number of times.
func (f *Faults) Crash(method, subject string, times int) {
	f.put(&fault{method: method, subject: subject, times: times, err: ErrCrashed, half: true})
}

// Delay makes a method take longer for a subject, every time.
func (f *Faults) Delay(method, subject string, d time.Duration) {
	f.put(&fault{method: method, subject: subject, times: -1, delay: d})
}

// KillAt interrupts the n-th operation from now (the first is 1) half way and makes everything
// after it fail, as SIGKILL would.
func (f *Faults) KillAt(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.killIn, f.dead, f.death = n, false, make(chan struct{})
}

func (f *Faults) kill() {
	f.dead = true
	close(f.death)
}

// KillContext returns a context that ends when the kill set by KillAt strikes, as a killed process would
// stop waiting.
func (f *Faults) KillContext(ctx context.Context) (context.Context, context.CancelFunc) {
	f.mu.Lock()
	death := f.death
	f.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-death: // blocks for ever if death is nil
			cancel(ErrKilled)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// Revive removes everything set by KillAt, Fail, Crash and Delay.
func (f *Faults) Revive() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.orders, f.killIn, f.dead, f.death = nil, 0, false, nil
}

// Calls returns the calls so far, in order, such as "Create receptor1" or "network cam".
func (f *Faults) Calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.calls...)
}

func (f *Faults) put(o *fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.orders = append(f.orders, o)
}

// An injectedResult is the injected result of one operation.
type injectedResult struct {
	err   error // the operation fails at once with this error,
	after error // or half way with this one
	delay time.Duration
}

// InjectedErrors returns the injected errors of an operation outside this package: before it, or after it
// is done but before its caller knows.
func (f *Faults) InjectedErrors(ctx context.Context, method, subject string) (before, after error) {
	what := f.begin(ctx, method, subject)
	if what.err != nil {
		return what.err, nil
	}
	return nil, what.halfway(ctx)
}

// begin records an operation and returns its injected result.
func (f *Faults) begin(ctx context.Context, method, subject string) injectedResult {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.dead:
		return injectedResult{err: ErrKilled}
	case ctx.Err() != nil:
		return injectedResult{err: context.Cause(ctx)}
	}
	f.calls = append(f.calls, method+" "+subject)
	if f.killIn > 0 {
		if f.killIn--; f.killIn == 0 {
			f.kill()
			return injectedResult{after: ErrKilled}
		}
	}
	var what injectedResult
	for _, o := range f.orders {
		if o.times == 0 || o.method != "" && o.method != method || o.subject != "" && o.subject != subject {
			continue
		}
		o.times--
		switch {
		case o.delay > 0:
			what.delay += o.delay
		case o.half:
			what.after = o.err
			return what
		default:
			what.err = o.err
			return what
		}
	}
	return what
}

// halfway waits for the delay and returns an error if the operation ends here.
func (w injectedResult) halfway(ctx context.Context) error {
	if w.delay > 0 {
		select {
		case <-time.After(w.delay):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return w.after
}
