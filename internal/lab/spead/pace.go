package spead

import (
	"time"

	"golang.org/x/sys/unix"
)

// A pace determines when the next piece may be sent. Each piece has a time in a schedule, so that a
// late sender catches up and the average rate of a trial is the requested one. But catching up is
// limited. A burst is at most a piece of 64 KiB plus the data for the time slack. Beyond that, a
// late sender sends at no more than catchUp times the rate.
type pace struct {
	perByte float64 // seconds per byte, or 0 for full speed
	began   time.Time
	sent    int       // bytes
	soonest time.Time // limit for catching up
}

// catchUp is the factor on the rate while a sender catches up. A sender that shares its processor
// may not be scheduled for some milliseconds, and a trial of 100 ms must be able to make up for
// that.
const catchUp = 1.25

// slack is how late a sender may be without being throttled. It is the typical delay of a sleep in
// the kernel of a virtual machine.
const slack = 250 * time.Microsecond

func newPace(rate float64, began time.Time) *pace {
	p := &pace{began: began, soonest: began}
	if rate > 0 {
		p.perByte = 8 / rate
	}
	return p
}

// due returns when the next piece may be sent.
func (p *pace) due() time.Time {
	if due := p.end(); !due.Before(p.soonest) {
		return due
	}
	return p.soonest
}

// recordSent records that a piece was sent at the given time.
func (p *pace) recordSent(bytes int, from time.Time) {
	p.sent += bytes
	if earliest := from.Add(-slack); earliest.After(p.soonest) {
		p.soonest = earliest
	}
	p.soonest = p.soonest.Add(time.Duration(float64(bytes) * p.perByte / catchUp * 1e9))
}

// burst returns how many bytes may be sent at once.
func (p *pace) burst(piece int) int {
	if p.perByte == 0 {
		return piece
	}
	return piece + int(slack.Seconds()/p.perByte)
}

// end returns the scheduled end of what was sent.
func (p *pace) end() time.Time { return p.began.Add(time.Duration(float64(p.sent) * p.perByte * 1e9)) }

// setTimerSlack makes the sleep of this thread as exact as the kernel can (prctl(2), PR_SET_TIMERSLACK). It
// does not raise the thread's priority, because that would delay a receiver on the same processor.
func setTimerSlack() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }

// sleepUntil sleeps in the kernel, because the Go runtime's sleep is only accurate to a
// millisecond.
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
