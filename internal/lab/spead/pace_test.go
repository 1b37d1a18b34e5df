package spead

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestPace: a sender that is late occasionally reaches the requested rate if it has time to catch
// up, and it never exceeds the burst size.
func TestPace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const piece = 64000
		rate := rapid.Float64Range(1e7, 5e10).Draw(t, "rate")
		began := time.Unix(1000, 0)
		p := newPace(rate, began)
		now := began
		type one struct {
			at    time.Time
			bytes int
		}
		var sent []one
		stall := time.Duration(rapid.IntRange(0, 5000).Draw(t, "stall")) * time.Microsecond
		for i := range 3000 {
			if due := p.due(); due.After(now) {
				now = due
			}
			if i == 100 {
				now = now.Add(stall)
			}
			p.recordSent(piece, now)
			sent = append(sent, one{now, piece})
		}
		took := p.end()
		if now.After(took) {
			took = now
		}
		if length := took.Sub(began); length > 5*stall+stall {
			if got := 3000 * piece * 8 / length.Seconds(); got < rate*0.99 || got > rate*1.01 {
				t.Fatalf("%g bit/s, asked %g", got, rate)
			}
		}
		// In any window, the bytes do not exceed the burst and the limited rate.
		for i := 0; i < len(sent); i += 37 {
			bytes := 0
			for j := i; j < min(i+200, len(sent)); j++ {
				bytes += sent[j].bytes
				window := sent[j].at.Sub(sent[i].at).Seconds()
				if most := float64(2*p.burst(piece)) + rate*catchUp/8*window; float64(bytes) > most*1.001 {
					t.Fatalf("%d bytes in %g s at %g bit/s", bytes, window, rate)
				}
			}
		}
	})
}
