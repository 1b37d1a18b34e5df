package site

import (
	"testing"
	"time"
)

// TestNext: what is done at intervals is due one interval after the last time, or at the time of day
// that follows it, even over a change of the clocks.
func TestNext(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip(err)
	}
	for _, c := range []struct {
		every      time.Duration
		at         string
		last, want string
	}{
		{time.Hour, "", "2026-11-28 10:20", "2026-11-28 11:20"},
		{day, "03:00", "2026-11-28 03:05", "2026-11-29 03:00"},
		{day, "03:00", "2026-11-28 02:55", "2026-11-28 03:00"},
		{day, "03:00", "2026-11-28 03:00", "2026-11-29 03:00"},
		{7 * day, "03:00", "2026-11-28 03:05", "2026-12-05 03:00"},
		{7 * day, "03:00", "2026-11-28 02:55", "2026-12-04 03:00"},
		{day, "03:00", "2026-10-24 12:00", "2026-10-25 03:00"}, // this day has 25 hours
		{day, "22:30", "2026-12-31 23:00", "2027-01-01 22:30"},
	} {
		last, err := time.ParseInLocation("2006-01-02 15:04", c.last, zone)
		if err != nil {
			t.Fatal(err)
		}
		if got := (Schedule{Every: c.every, At: c.at}).Next(last).Format("2006-01-02 15:04"); got != c.want {
			t.Errorf("every %s at %q after %s is %s, not %s", c.every, c.at, c.last, got, c.want)
		}
	}
	if next := (Schedule{Every: day, At: "03:00"}).Next(time.Time{}); !next.IsZero() {
		t.Errorf("what was never done is due at %s", next)
	}
}
