package schedule

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"orrery/internal/host"
	"orrery/internal/text/shell"
)

// NextRun returns when a timer of a site that last ran at the time last runs next. If it never
// does, idle is the reason: the timer is not set on this host, or no program there runs timers. The
// time is zero if the timer is set but its last run is unknown.
func (s Timers) NextRun(t Timer, last, now time.Time) (next time.Time, idle string) {
	const unscheduled = "not scheduled: run orrery up"
	if host.SystemdRuns() {
		timer := unitPath(s.unitName(t) + ".timer")
		switch {
		case !s.owns(timer) || !enabled(timer):
			return next, unscheduled
		case last.IsZero():
			return next, ""
		}
		return last.Add(t.Every), ""
	}
	table, _ := os.ReadFile(s.tablePath())
	entry := " " + shell.Quote(t.Part) + " >> " + shell.Quote(s.log(t)) + " "
	if !s.owns(s.tablePath()) || !strings.Contains(string(table), entry) {
		return next, unscheduled
	}
	if !cronRuns() {
		return next, "cron does not run"
	}
	when, _ := cronTime(t.Every, s.Key+" "+t.Part)
	return nextMatch(when, now), ""
}

// nextMatch returns the first moment after now that matches the times of a crontab, as cronTime writes
// them. Cron uses the local time.
func nextMatch(when string, now time.Time) time.Time {
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

// cronRuns reports whether a cron daemon runs. It is not enough that one is installed.
func cronRuns() bool {
	names, _ := filepath.Glob("/proc/[0-9]*/comm")
	return slices.ContainsFunc(names, func(path string) bool {
		name, _ := os.ReadFile(path)
		return slices.Contains([]string{"cron", "crond", "cronie", "fcron", "systemd-cron"}, strings.TrimSpace(string(name)))
	})
}
