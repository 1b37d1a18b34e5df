package observe

import (
	"testing"
	"time"
)

// TestTrialTime: a trial's time is measured by the monotonic clock. After a reboot it is measured
// by the calendar, but is never longer than its duration.
//
// Promise (Data and time): Setting the host's clock makes a trial neither longer nor shorter; a
// trial ends even if its watcher was killed. With control/trial.TestClockSet,
// test.TestTrialForgotten.
func TestTrialTime(t *testing.T) {
	noon := time.Date(2026, 7, 30, 12, 0, 0, 0, time.UTC)
	trial := &Trial{Within: 10 * time.Minute}
	trial.SetDeadline(Timestamp{noon, "one", time.Hour}, trial.Within)
	if !trial.Until.Equal(noon.Add(10 * time.Minute)) {
		t.Errorf("it is until %s", trial.Until)
	}
	for _, try := range []struct {
		now  Timestamp
		left time.Duration
		why  string
	}{
		{Timestamp{noon.Add(4 * time.Minute), "one", time.Hour + 4*time.Minute}, 6 * time.Minute, "4 minutes later"},
		{Timestamp{noon.Add(4 * time.Hour), "one", time.Hour + 4*time.Minute}, 6 * time.Minute,
			"4 minutes later, the clock was set forward"},
		{Timestamp{noon.Add(-4 * time.Hour), "one", time.Hour + 4*time.Minute}, 6 * time.Minute,
			"4 minutes later, the clock was set back"},
		{Timestamp{noon, "one", time.Hour + 11*time.Minute}, 0, "11 minutes later, the clock stood still"},
		{Timestamp{noon.Add(4 * time.Minute), "two", time.Second}, 6 * time.Minute, "after a reboot"},
		{Timestamp{noon.Add(40 * time.Minute), "two", time.Second}, 0, "after a long reboot"},
		{Timestamp{noon.Add(-40 * time.Hour), "two", 2 * time.Hour}, 10 * time.Minute,
			"after a reboot with an empty battery"},
	} {
		if left := trial.Remaining(try.now); left != try.left {
			t.Errorf("%s: %s is left, not %s", try.why, left, try.left)
		}
	}
	old := &Trial{Until: noon, Within: time.Minute} // as earlier versions wrote it
	if left := old.Remaining(Timestamp{Calendar: noon.Add(-time.Second)}); left != time.Second {
		t.Errorf("of a trial without a boot %s is left", left)
	}
}
