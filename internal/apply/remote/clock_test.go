package remote_test

import (
	"testing"
	"time"
)

// TestClock: each call asks the host again for its clock, and measures how long that takes.
func TestClock(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		l := lied(t, "greet", said{"result": said{"version": "1", "time": time.Now().Add(ahead)}})
		if got := l.Skew - ahead; got.Abs() > time.Minute {
			t.Errorf("its clock is %v ahead, and not %v", l.Skew, ahead)
		}
		skew, took, err := l.Host("s", nil).Runs.Clock(t.Context())
		must(t, err)
		if (skew-ahead).Abs() > time.Minute || took <= 0 || took > time.Minute {
			t.Errorf("asked again, its clock is %v ahead, and not %v; it took %v", skew, ahead, took)
		}
		l.Close()
		if offset, _, err := l.Host("s", nil).Runs.Clock(t.Context()); err == nil {
			t.Errorf("of a host that is gone, the clock is %v ahead", offset)
		}
	}
}
