package schedule

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/internal/host"
)

// TestNextOf checks that nextMatch returns the same times as cron.
func TestNextOf(t *testing.T) {
	now := time.Date(2026, 11, 22, 13, 20, 30, 0, time.Local) // a Sunday
	for when, want := range map[string]string{
		"* * * * *":      "22 13:21",
		"*/6 * * * *":    "22 13:24",
		"5 * * * *":      "22 14:05",
		"30 */12 * * *":  "23 00:30",
		"20 13 * * *":    "23 13:20",
		"10 9 * * 0":     "29 09:10",
		"21 13 * * 0":    "22 13:21",
		"never * * * * ": "01 00:00",
	} {
		if got := nextMatch(when, now).Format("02 15:04"); got != want {
			t.Errorf("%q: %s, want %s", when, got, want)
		}
	}
}

// TestNextRun checks that no run is announced that will not happen.
func TestNextRun(t *testing.T) {
	if host.SystemdRuns() {
		t.Skip("systemd runs this machine: scenarios/metal tries its timers")
	}
	old := etc
	etc = t.TempDir()
	t.Cleanup(func() { etc = old })
	now := time.Now()
	timers := func(all ...Timer) Timers {
		return Timers{Key: "karoo", Program: "/bin/orrery", Dirs: host.Dirs{State: "/x", Run: "/y"}, All: all}
	}
	archive := Timer{"mirror", "archive", 90 * time.Minute, []string{"host-run", "karoo", "mirror", "archive"}}
	next := func(volume string) (time.Time, string) {
		return timers().NextRun(Timer{For: "mirror", Part: volume, Every: 90 * time.Minute}, now, now)
	}
	if at, idle := next("archive"); !at.IsZero() || !strings.Contains(idle, "not scheduled: run orrery up") {
		t.Errorf("of a site that is down: %s, %q", at, idle)
	}
	if err := os.Mkdir(filepath.Join(etc, "cron.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := timers(archive).Apply(); err != nil {
		t.Fatal(err)
	}
	if at, idle := next("db"); !at.IsZero() || idle == "" {
		t.Errorf("of a volume that was not scheduled: %s, %q", at, idle)
	}
	switch at, idle := next("archive"); {
	case cronRuns() && (idle != "" || at.Before(now) || at.After(now.Add(time.Hour+time.Minute))):
		// Cron cannot express 90 minutes.
		t.Errorf("next %s, %q", at, idle)
	case !cronRuns() && (idle != "cron does not run" || !at.IsZero()):
		t.Errorf("without cron: %s, %q", at, idle)
	}
}
