package volume

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"orrery/internal/host"
)

// NextRun tells when a volume that is to be mirrored every so often will be, or why nothing is going to do so: only what is scheduled on this host, and
// has something that runs schedules, comes to pass. The time is zero if it is scheduled, but not known when it was mirrored last.
func NextRun(key, volume string, every time.Duration, last, now time.Time) (next time.Time, idle string) {
	const unscheduled = "not scheduled: orrery up does that"
	s := Schedule{Key: key}
	if host.SystemdRuns() {
		timer := unitPath(s.unitName(volume) + ".timer")
		switch {
		case !s.owns(timer) || !enabled(timer):
			return next, unscheduled
		case last.IsZero():
			return next, ""
		}
		return last.Add(every), ""
	}
	table, _ := os.ReadFile(s.tablePath())
	if !s.owns(s.tablePath()) || !strings.Contains(string(table), " "+host.Quote(volume)+" >> ") {
		return next, unscheduled
	}
	if !cronRuns() {
		return next, "cron does not run"
	}
	when, _ := cronTime(every, key+" "+volume)
	return nextOf(when, now), ""
}

// nextOf gives the first moment after now that the times of a table mean, as cronTime writes them. Cron goes by the local time.
func nextOf(when string, now time.Time) time.Time {
	fields := strings.Fields(when)
	fits := func(field string, value int) bool {
		if n, ok := strings.CutPrefix(field, "*/"); ok {
			step, err := strconv.Atoi(n)
			return err == nil && value%step == 0
		}
		return field == "*" || field == strconv.Itoa(value)
	}
	at := now.Truncate(time.Minute)
	for range 8 * 24 * 60 {
		at = at.Add(time.Minute)
		if fits(fields[0], at.Minute()) && fits(fields[1], at.Hour()) && fits(fields[4], int(at.Weekday())) {
			return at
		}
	}
	return time.Time{}
}

// cronRuns reports whether a cron daemon is at work. To be installed is not enough.
func cronRuns() bool {
	names, _ := filepath.Glob("/proc/[0-9]*/comm")
	return slices.ContainsFunc(names, func(path string) bool {
		name, _ := os.ReadFile(path)
		return slices.Contains([]string{"cron", "crond", "cronie", "fcron", "systemd-cron"}, strings.TrimSpace(string(name)))
	})
}
