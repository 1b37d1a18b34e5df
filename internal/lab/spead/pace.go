package spead

import (
	"time"

	"golang.org/x/sys/unix"
)

// A pace says when the next piece may be sent. Pieces have places in a schedule, so that whoever
// was late catches up and the rate over a trial is the one asked for. But catching up is bounded:
// what is sent at once is at most a piece of 64 KiB and what the rate gives in the time of slack,
// and beyond that a sender that is late sends at no more than catchUp times the rate.
type pace struct {
	perByte float64 // seconds; 0: as fast as it goes
	began   time.Time
	sent    int       // bytes
	soonest time.Time // because of the bound on catching up
}

// catchUp is how much faster than asked a sender is while it catches up. A sender that shares its
// processor may be set aside for some milliseconds: a trial of 100 ms must be able to make up for
// that.
const catchUp = 1.25

// slack is how late a sender may be without being held back: it is what a sleep of the kernel is
// late by on a virtual machine.
const slack = 250 * time.Microsecond

func newPace(rate float64, began time.Time) *pace {
	p := &pace{began: began, soonest: began}
	if rate > 0 {
		p.perByte = 8 / rate
	}
	return p
}

// due is when the next piece may be sent.
func (p *pace) due() time.Time {
	if due := p.end(); !due.Before(p.soonest) {
		return due
	}
	return p.soonest
}

// note says that a piece of so many bytes was sent, from a moment on.
func (p *pace) note(bytes int, from time.Time) {
	p.sent += bytes
	if earliest := from.Add(-slack); earliest.After(p.soonest) {
		p.soonest = earliest
	}
	p.soonest = p.soonest.Add(time.Duration(float64(bytes) * p.perByte / catchUp * 1e9))
}

// burst is how many bytes may be sent at once.
func (p *pace) burst(piece int) int {
	if p.perByte == 0 {
		return piece
	}
	return piece + int(slack.Seconds()/p.perByte)
}

// end is when what was sent has had its time.
func (p *pace) end() time.Time { return p.began.Add(time.Duration(float64(p.sent) * p.perByte * 1e9)) }

// exact makes the sleep of this thread as exact as the kernel can (prctl(2), PR_SET_TIMERSLACK). It
// does not put the thread before others: that would keep a receiver waiting that shares its
// processor.
func exact() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }

// sleepUntil sleeps in the kernel: the runtime's own sleep is good to a millisecond only.
func sleepUntil(t time.Time) time.Time {
	for {
		now := time.Now()
		left := t.Sub(now)
		if left <= 0 {
			return now
		}
		wait := unix.NsecToTimespec(left.Nanoseconds())
		_ = unix.Nanosleep(&wait, nil)
	}
}
