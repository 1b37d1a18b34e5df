package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"orrery/internal/host/waits"
	"orrery/internal/problem"
	"orrery/internal/text/sanitize"
	"orrery/internal/transport/rpc"
)

// How long to wait for a host. A helper that sends signs of life is not lost, but may still never
// answer.
var ( // variables, so that tests can change them
	answerTimeout  = 2 * time.Minute  // for calls that a host answers at once
	greetTimeout   = 30 * time.Second // for the first message of a helper that has just started
	stopTimeout    = 30 * time.Second // for the end of a call that its caller has given up
	noticeInterval = 5 * time.Second  // until the user is told which host is being waited for; doubled each time
)

// maxNoticeInterval is the longest time between two such notices.
const maxNoticeInterval = time.Minute

// A clientCall is a call to a host. It ends with its context, or with its timeout if it has one.
type clientCall struct {
	*rpc.Stream
	callOptions
	link  *Link
	about string // the name of its method

	unwatch func() bool
	closed  atomic.Bool // because the context has ended

	mutex    sync.Mutex
	over     bool
	stopping bool        // only the end of the call is expected
	late     *time.Timer // drops the connection, or nil if the call has no timeout
	reminder *reminder   // or nil
}

// begin starts a call. The caller must close the talk.
func (l *Link) begin(ctx context.Context, about string, how callOptions, question any) (*clientCall, error) {
	in, err := l.client.OpenStream(ctx, about)
	if err != nil {
		return nil, l.lost(err)
	}
	in.Most = cmp.Or(how.maxBytes, defaultMaxBytes)
	t := &clientCall{Stream: in, callOptions: how, link: l, about: about}
	if !t.long {
		t.expect(answerTimeout, "did not answer")
	}
	t.unwatch = context.AfterFunc(ctx, t.cancelCall)
	if err := t.Send(question); err != nil {
		err = t.failed(ctx, err)
		t.Close()
		return nil, err
	}
	return t, nil
}

// stopWithin drops the connection unless the call ends in time, even if the host reports that it is
// waiting.
func (t *clientCall) stopWithin(timeout time.Duration) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.stopping = true
	t.limit(timeout, "did not end")
}

// expect drops the connection unless the host answers in time.
func (t *clientCall) expect(within time.Duration, what string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.limit(within, what)
}

// limit starts the timeout for expect and stopWithin. The caller holds the mutex.
func (t *clientCall) limit(within time.Duration, what string) {
	if t.late != nil {
		t.late.Stop()
	}
	if !t.over {
		t.late = time.AfterFunc(within,
			func() { t.link.client.CloseWithError(&noAnswerError{t.link.name, t.about, what, within}) })
	}
}

// answered stops the timeout because the host has answered.
func (t *clientCall) answered() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.late != nil {
		t.late.Stop()
		t.late = nil
	}
}

// wait restarts the timeout, because the user has been told what the host is waiting for. A host
// that still waits reports so again before the timeout ends. Until then, the user is not reminded
// of the host.
func (t *clientCall) wait() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.late != nil && !t.stopping {
		t.late.Reset(answerTimeout)
	}
	if t.reminder != nil {
		t.reminder.postpone()
	}
}

// cancelCall ends a call whose context has ended.
func (t *clientCall) cancelCall() {
	t.closed.Store(t.abandoned)
	t.abandon()
}

// abandon ends a call whose result is no longer wanted. Unless the call is abandoned, the host first
// completes what it is doing.
func (t *clientCall) abandon() {
	if t.abandoned {
		t.Stream.Close()
		return
	}
	t.stopWithin(*cmp.Or(t.stop, &stopTimeout))
	t.startReminder()
	t.Stop()
}

// startReminder starts telling the user which host is being waited for.
func (t *clientCall) startReminder() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.reminder == nil && !t.over {
		t.reminder = remind(t.link.name, t.about, t.link.tell)
	}
}

// stopReminder stops telling the user.
func (t *clientCall) stopReminder() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.reminder != nil {
		t.reminder.stop()
		t.reminder = nil
	}
}

// Close ends the call, whatever the host does.
func (t *clientCall) Close() {
	t.unwatch()
	t.Stream.Close()
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.over = true
	if t.late != nil {
		t.late.Stop()
	}
	if t.reminder != nil {
		t.reminder.stop()
	}
}

// maxWaitsBytes limits a host's text about what it is waiting for.
const maxWaitsBytes = 500

// recv returns the next message of the call. Messages about what the host is waiting for are passed
// to the user.
func (t *clientCall) recv(ctx context.Context) (*response, error) {
	for {
		var w response
		if err := t.Recv(&w); err != nil {
			return nil, t.failed(ctx, err)
		}
		if w.Waits == "" {
			return &w, nil
		}
		t.wait()
		waits.Report(ctx, "host "+t.link.name+" "+sanitize.Line(problem.Truncate(w.Waits, maxWaitsBytes)))
	}
}

// recvOne returns the next message, and tells the user if that takes long.
func (t *clientCall) recvOne(ctx context.Context) (*response, error) {
	t.startReminder()
	defer t.stopReminder()
	return t.recv(ctx)
}

// failed explains why no more messages arrive. If the call was ended at this end, the reason is the
// end of its context.
func (t *clientCall) failed(ctx context.Context, err error) error {
	if t.closed.Load() {
		return context.Cause(ctx)
	}
	return t.link.lost(err)
}

// A reminder tells the user repeatedly which host is being waited for, and for what, until it is
// stopped.
type reminder struct {
	mutex    sync.Mutex
	next     *time.Timer
	interval time.Duration
	over     bool
}

// Remind starts a reminder.
func Remind(name, about string, tell func(text string)) (stop func()) {
	return remind(name, about, tell).stop
}

func remind(name, about string, tell func(text string)) *reminder {
	r := &reminder{interval: noticeInterval}
	began := time.Now()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.next = time.AfterFunc(r.interval, func() {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		if r.over {
			return
		}
		tell(fmt.Sprintf("still waiting for host %s: %s, %d s", name, about, int(time.Since(began).Seconds())))
		r.interval = min(2*r.interval, maxNoticeInterval)
		r.next.Reset(r.interval)
	})
	return r
}

// postpone delays a reminder, because the user has just been told why the host takes long.
func (r *reminder) postpone() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.over {
		r.next.Reset(maxNoticeInterval)
	}
}

func (r *reminder) stop() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.over = true
	r.next.Stop()
}

// Notify sets the function that is told which host is being waited for.
func (l *Link) Notify(notice func(text string)) { l.notice.Store(&notice) }

func (l *Link) tell(text string) {
	if notice := l.notice.Load(); notice != nil {
		(*notice)(text)
	}
}

// A noAnswerError is the error of a host that sends signs of life, but no answer.
type noAnswerError struct {
	host, about, what string
	within            time.Duration
}

func (m *noAnswerError) Error() string {
	return fmt.Sprintf("it %s %q within %v, although it is connected", m.what, m.about, m.within)
}

// problem returns the problem to display.
func (m *noAnswerError) problem() error {
	return problem.New(problem.Failed, "host %s was given up", m.host).Because(m).
		Try("check its disks and its load, and run the same command again; closing the connection has stopped the work there")
}

// lossReason returns why the connection has ended, or nil if it has not.
func (l *Link) lossReason() error {
	why := l.client.Err()
	var m *noAnswerError
	switch {
	case why == nil:
		return nil
	case errors.As(why, &m):
		return lostError{m.problem()}
	}
	return lostError{l.why(why)}
}
