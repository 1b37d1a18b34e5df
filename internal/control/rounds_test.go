package control_test

import (
	"io"
	"orrery/internal/control/overdue"
	"orrery/internal/control/sites"
	"orrery/internal/control/status"
	"os"
	"os/exec"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A lane carries data from one end of a connection to the other, with a delay.
type lane struct {
	delay  time.Duration
	said   chan spoken
	closed chan struct{}
	once   sync.Once
	rest   []byte
}

type spoken struct {
	text []byte
	due  time.Time
}

func newLane(delay time.Duration) *lane {
	return &lane{delay: delay, said: make(chan spoken, 1<<16), closed: make(chan struct{})}
}

func (l *lane) Write(p []byte) (int, error) {
	select {
	case <-l.closed:
		return 0, io.ErrClosedPipe
	case l.said <- spoken{append([]byte(nil), p...), time.Now().Add(l.delay)}:
		return len(p), nil
	}
}

func (l *lane) Read(p []byte) (int, error) {
	if len(l.rest) == 0 {
		select {
		case <-l.closed:
			return 0, io.EOF
		case s := <-l.said:
			time.Sleep(time.Until(s.due))
			l.rest = s.text
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

func (l *lane) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// An end is one end of a connection.
type end struct{ in, out *lane }

func (e end) Read(p []byte) (int, error)  { return e.in.Read(p) }
func (e end) Write(p []byte) (int, error) { return e.out.Write(p) }
func (e end) Close() error                { _ = e.in.Close(); return e.out.Close() }

// longLine returns the ends of a connection with a delay.
func longLine(delay time.Duration) (near, far io.ReadWriteCloser) {
	out, back := newLane(delay), newLane(delay)
	return end{back, out}, end{out, back}
}

// TestRoundTrips: few requests to a host wait for the answer to another request. Each of them takes
// a round trip, which is seconds over a satellite. The time is that of the synctest bubble, in
// which only the delay takes time.
func TestRoundTrips(t *testing.T) {
	const alone = "ORRERY_TEST_ROUND_TRIPS"
	if os.Getenv(alone) == "" { // yamux shares timers, and those of a bubble must not be used outside of it
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRoundTrips$")
		cmd.Env = append(os.Environ(), alone+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	synctest.Test(t, func(t *testing.T) {
		const delay = time.Second
		d, _ := farDesk(t)
		d.machine.line = func() (near, far io.ReadWriteCloser) { return longLine(0) }
		d.up()
		d.machine.line = func() (near, far io.ReadWriteCloser) { return longLine(delay) }
		rounds := func(do func()) int {
			d.Links.Close()
			synctest.Wait()
			began := time.Now()
			do()
			return int(time.Since(began) / (2 * delay))
		}
		for what, c := range map[string]struct {
			maxRounds int
			do        func()
		}{
			"plan": {4, func() {
				_, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{})
				d.must(err)
			}},
			"up, with nothing to do": {12, func() {
				_, _, err := sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{})
				d.must(err)
			}},
			"status": {6, func() {
				all, err := status.Read(t.Context(), d.Session, d.site(), nil)
				d.must(err)
				d.must(overdue.ReportPendingOn(t.Context(), d.Session, d.site(), all.Fleet))
			}},
		} {
			if n := rounds(c.do); n > c.maxRounds {
				t.Errorf("%s takes %d round trips, and may take %d", what, n, c.maxRounds)
			}
		}
		d.Links.Close()
		time.Sleep(time.Minute) // for the helpers, which answer with a delay
	})
}
