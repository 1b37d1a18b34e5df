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

// How long a host is waited for. A helper that gives signs of life is not lost, and may still never answer.
var ( // variables, so that tests can change them
	answerTimeout  = 2 * time.Minute  // for what a host answers at once
	greetTimeout   = 30 * time.Second // for the first word of a helper that was just started
	stopTimeout    = 30 * time.Second // for the end of what its caller has given up
	noticeInterval = 5 * time.Second  // until the user is told who is waited for; each further time twice as long
)

// maxNoticeInterval is how long a user is told nothing at most.
const maxNoticeInterval = time.Minute

// A talk is a call of a host. It ends with its context, and with its time if it has one.
type talk struct {
	*rpc.Talk
	traits
	link  *Link
	about string // the name of its method

	unwatch func() bool
	closed  atomic.Bool // because its context has ended

	mutex    sync.Mutex
	over     bool
	stopping bool        // nothing but its end is expected
	late     *time.Timer // gives the connection up; nil: the call may take as long as it likes
	reminder *reminder   // nil: there is none
}

// begin asks a host something. The caller closes the talk.
func (l *Link) begin(ctx context.Context, about string, how traits, question any) (*talk, error) {
	in, err := l.client.Talk(ctx, about)
	if err != nil {
		return nil, l.lost(err)
	}
	in.Most = cmp.Or(how.maxBytes, defaultMaxBytes)
	t := &talk{Talk: in, traits: how, link: l, about: about}
	if !t.long {
		t.expect(answerTimeout, "has not answered")
	}
	t.unwatch = context.AfterFunc(ctx, t.giveUp)
	if err := t.Say(question); err != nil {
		err = t.failed(ctx, err)
		t.Close()
		return nil, err
	}
	return t, nil
}

// stopWithin drops the connection unless the call has ended in time, whomever the host says it waits for.
func (t *talk) stopWithin(timeout time.Duration) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.stopping = true
	t.limit(timeout, "has not ended")
}

// expect drops the connection unless the host answers in time.
func (t *talk) expect(within time.Duration, what string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.limit(within, what)
}

// limit does so. The mutex is held.
func (t *talk) limit(within time.Duration, what string) {
	if t.late != nil {
		t.late.Stop()
	}
	if !t.over {
		t.late = time.AfterFunc(within, func() { t.link.client.GiveUp(&mute{t.link.name, t.about, what, within}) })
	}
}

// answered says that the host has answered what was expected.
func (t *talk) answered() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.late != nil {
		t.late.Stop()
		t.late = nil
	}
}

// wait leaves the host its time once more, because the user has been told for whom it waits. A host
// that still waits says so again before that time is over. Until then, the user is not told that
// the host is waited for.
func (t *talk) wait() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.late != nil && !t.stopping {
		t.late.Reset(answerTimeout)
	}
	if t.reminder != nil {
		t.reminder.postpone()
	}
}

// giveUp ends a call whose context has ended.
func (t *talk) giveUp() {
	t.closed.Store(t.abandoned)
	t.quit()
}

// quit ends a call whose result is no longer wanted: what the host may be doing comes to its end first.
func (t *talk) quit() {
	if t.abandoned {
		t.Talk.Close()
		return
	}
	t.stopWithin(*cmp.Or(t.stop, &stopTimeout))
	t.reminded()
	t.Stop()
}

// reminded tells the user from now on, and until the end of the call, who is waited for.
func (t *talk) reminded() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.reminder == nil && !t.over {
		t.reminder = remind(t.link.name, t.about, t.link.tell)
	}
}

// unreminded ends that.
func (t *talk) unreminded() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.reminder != nil {
		t.reminder.stop()
		t.reminder = nil
	}
}

// Close ends the call, whatever the host does.
func (t *talk) Close() {
	t.unwatch()
	t.Talk.Close()
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

// maxWaitsBytes is how much a host may say of whom it waits for.
const maxWaitsBytes = 500

// hear returns the next word that is about the call. For whom the host waits is told on the way.
func (t *talk) hear(ctx context.Context) (*word, error) {
	for {
		var w word
		if err := t.Hear(&w); err != nil {
			return nil, t.failed(ctx, err)
		}
		if w.Waits == "" {
			return &w, nil
		}
		t.wait()
		waits.Tell(ctx, "host "+t.link.name+" "+sanitize.Line(problem.Short(w.Waits, maxWaitsBytes)))
	}
}

// hearOne does so, and tells the user if that takes long.
func (t *talk) hearOne(ctx context.Context) (*word, error) {
	t.reminded()
	defer t.unreminded()
	return t.hear(ctx)
}

// failed explains why nothing more is heard: of a call that was ended here, the end of its context
// is the reason.
func (t *talk) failed(ctx context.Context, err error) error {
	if t.closed.Load() {
		return context.Cause(ctx)
	}
	return t.link.lost(err)
}

// A reminder tells the user which host is waited for, and for what, again and again until it is stopped.
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

// postpone keeps a reminder silent for a while: the user has just been told why the host takes long.
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

// Notify sets who is told of hosts that are waited for.
func (l *Link) Notify(notice func(text string)) { l.notice.Store(&notice) }

func (l *Link) tell(text string) {
	if notice := l.notice.Load(); notice != nil {
		(*notice)(text)
	}
}

// A mute host gives signs of life, and no answer.
type mute struct {
	host, about, what string
	within            time.Duration
}

func (m *mute) Error() string {
	return fmt.Sprintf("it %s %q within %v, although it gives signs of life", m.what, m.about, m.within)
}

// problem says so to a user.
func (m *mute) problem() error {
	return problem.New(problem.Failed, "host %s was given up", m.host).Because(m).
		Try("see whether its disks and its load let it work, and run the same command again; the end of the connection has ended there what was under way")
}

// explained says why the connection has ended, if it has.
func (l *Link) explained() error {
	why := l.client.Why()
	var m *mute
	switch {
	case why == nil:
		return nil
	case errors.As(why, &m):
		return gone{m.problem()}
	}
	return gone{l.why(why)}
}
