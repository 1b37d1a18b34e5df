package fake

import (
	"context"
	"errors"
	"sync"
	"time"
)

// What ordered failures give unless told otherwise.
var (
	ErrOrdered = errors.New("this failure was ordered")
	ErrCrashed = errors.New("interrupted half way, as ordered")
	ErrKilled  = errors.New("killed, as ordered: nothing works until Revive")
)

// Faults are the failures and delays that a test orders of a fake engine or host, and the record of
// what was asked of it. Methods are those of engine.Engine and engine.Keeper ("Create") and the
// kinds of steps that concern no node ("network"); subjects are nodes, networks, layers. "" stands
// for any of them.
type Faults struct {
	mu     sync.Mutex
	orders []*order
	calls  []string
	killIn int // operations until the kill; 0: none ordered
	dead   bool
	death  chan struct{} // closed when it is
}

type order struct {
	method, subject string
	times           int
	err             error
	half            bool
	delay           time.Duration
}

// Fail lets a method fail for a subject before it has done anything, so many times. A nil err
// stands for ErrOrdered.
func (f *Faults) Fail(method, subject string, times int, err error) {
	if err == nil {
		err = ErrOrdered
	}
	f.put(&order{method: method, subject: subject, times: times, err: err})
}

// Crash lets a method fail for a subject half way, so many times.
func (f *Faults) Crash(method, subject string, times int) {
	f.put(&order{method: method, subject: subject, times: times, err: ErrCrashed, half: true})
}

// Delay lets a method take so long for a subject, always.
func (f *Faults) Delay(method, subject string, d time.Duration) {
	f.put(&order{method: method, subject: subject, times: -1, delay: d})
}

// KillAt interrupts the n-th operation from now (the first is 1) half way and lets everything
// afterwards fail, as SIGKILL would.
func (f *Faults) KillAt(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.killIn, f.dead, f.death = n, false, make(chan struct{})
}

func (f *Faults) die() {
	f.dead = true
	close(f.death)
}

// Dying returns a context that ends when a kill that is ordered strikes, as all does then that a
// process is waiting for.
func (f *Faults) Dying(ctx context.Context) (context.Context, context.CancelFunc) {
	f.mu.Lock()
	death := f.death
	f.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-death: // nil: it never comes
			cancel(ErrKilled)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// Revive ends what KillAt and Fail and Crash and Delay ordered.
func (f *Faults) Revive() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.orders, f.killIn, f.dead, f.death = nil, 0, false, nil
}

// Calls returns what was asked, in order: "Create receptor1", "network cam".
func (f *Faults) Calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.calls...)
}

func (f *Faults) put(o *order) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.orders = append(f.orders, o)
}

// A fate is what befalls one operation.
type fate struct {
	err   error // the operation fails with this at once,
	after error // or with this, when half of it is done
	delay time.Duration
}

// Befall tells what befalls an operation of somebody else's: before it, or when it has been done
// and nobody has been told.
func (f *Faults) Befall(ctx context.Context, method, subject string) (before, after error) {
	what := f.begin(ctx, method, subject)
	if what.err != nil {
		return what.err, nil
	}
	return nil, what.halfway(ctx)
}

// begin records an operation and tells what befalls it.
func (f *Faults) begin(ctx context.Context, method, subject string) fate {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.dead:
		return fate{err: ErrKilled}
	case ctx.Err() != nil:
		return fate{err: context.Cause(ctx)}
	}
	f.calls = append(f.calls, method+" "+subject)
	if f.killIn > 0 {
		if f.killIn--; f.killIn == 0 {
			f.die()
			return fate{after: ErrKilled}
		}
	}
	var what fate
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

// halfway waits out the delay and tells whether the operation ends here.
func (w fate) halfway(ctx context.Context) error {
	if w.delay > 0 {
		select {
		case <-time.After(w.delay):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return w.after
}
