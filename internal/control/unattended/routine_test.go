package unattended

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"orrery/internal/apply"
	"orrery/internal/host"
	"orrery/internal/observe/routine"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/event"
)

const day = 24 * time.Hour

// TestDue: a routine is due after its interval or at its time of day, once after any number of
// missed times, and an hour after a failure.
func TestDue(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	done := func(d time.Duration) routine.Record { return routine.Record{Begun: ago(d), Done: ago(d)} }
	failed := func(began, good time.Duration) routine.Record {
		return routine.Record{Begun: ago(began), Done: ago(good), Failures: 1}
	}
	hourly, often := site.Schedule{Every: time.Hour}, site.Schedule{Every: 2 * time.Minute}
	daily, nightly := site.Schedule{Every: day}, site.Schedule{Every: day, At: "03:00"}
	for name, c := range map[string]struct {
		when site.Schedule
		last routine.Record
		due  bool
	}{
		"never done":                      {daily, routine.Record{}, true},
		"never done at night":             {nightly, routine.Record{}, true},
		"never, and failed just now":      {daily, routine.Record{Begun: ago(time.Minute)}, false},
		"never, and failed an hour ago":   {daily, routine.Record{Begun: ago(time.Hour)}, true},
		"just now":                        {hourly, done(0), false},
		"half an hour ago":                {hourly, done(30 * time.Minute), false},
		"an hour ago, but for the timer":  {hourly, done(59 * time.Minute), true},
		"two minutes ago":                 {often, done(2 * time.Minute), true},
		"a minute ago":                    {often, done(time.Minute), false},
		"a week ago":                      {daily, done(7 * day), true},
		"last night":                      {nightly, done(9 * time.Hour), false},
		"before last night":               {nightly, done(10 * time.Hour), true},
		"failed, then too early to retry": {nightly, failed(30*time.Minute, day), false},
		"failed, then time to retry":      {nightly, failed(55*time.Minute, day), true},
		"failed before a switch":          {nightly, failed(2*time.Hour, 9*time.Hour), false},
	} {
		if isDue(c.when, c.last, now) != c.due {
			t.Errorf("%s: due is %v", name, !c.due)
		}
	}
}

// TestLatest: of the records of hosts, that of the last attempt counts. Records from the future do
// not, because a wrong clock would end all backups.
func TestLatest(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration, made string) routine.Record {
		return routine.Record{Begun: now.Add(d), Done: now.Add(d), Made: made}
	}
	broken := at(-time.Minute, "d")
	broken.Done = now.Add(time.Hour)
	for want, all := range map[string][]routine.Record{
		"": nil, "a": {at(-2*time.Hour, "b"), at(-time.Hour, "a")}, "b": {at(time.Hour, "a"), at(-time.Hour, "b")},
		"c": {at(30*time.Second, "c"), broken},
	} {
		if got := latestOf(now, all...); got.Made != want {
			t.Errorf("the last is %+v, not %q", got, want)
		}
	}
}

// A work is what routines do with the site, in this test.
type work struct {
	m      *machine
	fleet  *apply.Fleet
	err    error     // of all
	do     int       // how often something was made
	found  []Finding // by the next look
	looks  int
	meddle func() // called during a look, or nil
}

func (w *work) Hosts(context.Context) (*apply.Fleet, error) { return w.fleet, nil }

func (w *work) Do(_ context.Context, routine string) (string, error) {
	w.do++
	return routine + "-1", w.err
}

func (w *work) Look(context.Context) ([]Finding, error) {
	w.looks++
	if w.meddle != nil {
		w.meddle()
	}
	return w.found, w.err
}

// newRoutines returns a host with plans for routines. Its hook takes all events.
func newRoutines(t *testing.T) (h *Host, w *work) {
	t.Helper()
	m, h := newMachine(t)
	w = &work{m: m, fleet: apply.SingleHost(&apply.HostClient{Name: "sv1", Host: m.host.Worker.Host})}
	h.Work = w
	p := apply.UnattendedPlan{Trigger: apply.TriggerRoutine, Host: "sv1",
		Every: map[string]time.Duration{routine.Backup: longTick, routine.Watch: time.Minute},
		When:  map[string]site.Schedule{routine.Backup: {Every: day}},
		Hooks: []site.Hook{{Name: "alert", On: event.Alerting, Command: []string{"/bin/true"}}}}
	if _, err := m.host.Worker.State.SavePlan(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return h, w
}

// events returns the events that wait for hooks, as "EVENT RESULT SUBJECT", and removes them.
func events(t *testing.T, h *Host) (all []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(h.Dirs.Site(h.Key), "hooks", "*.json"))
	must(t, err)
	slices.Sort(paths)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		must(t, err)
		var l struct {
			What struct{ Event, Result, Subject, Why string }
		}
		must(t, json.Unmarshal(text, &l))
		all = append(all, strings.TrimSpace(l.What.Event+" "+l.What.Result+" "+l.What.Subject))
		must(t, os.Remove(path))
	}
	return all
}

func wantEvents(t *testing.T, h *Host, want ...string) {
	t.Helper()
	if got := events(t, h); !slices.Equal(got, want) {
		t.Errorf("hooks get %q, not %q", got, want)
	}
}

// TestBackupRoutine: timers start it every quarter of an hour. It backs up once a day, tries again
// after a failure, and notifies hooks when it begins to fail and when it works again.
func TestBackupRoutine(t *testing.T) {
	h, w := newRoutines(t)
	h.Say = func(err error) { t.Log(err) }
	synctest.Test(t, func(t *testing.T) {
		run := func(d time.Duration) (failed int) {
			for range d / longTick {
				if err := h.Run(t.Context(), apply.TriggerRoutine, routine.Backup); err != nil {
					failed++
				}
				time.Sleep(longTick)
			}
			return failed
		}
		if failed := run(3 * day); failed > 0 || w.do != 3 {
			t.Errorf("in three days, %d backups are taken and %d fail", w.do, failed)
		}
		time.Sleep(5 * day) // the host is off
		run(day)
		if w.do != 4 {
			t.Errorf("after an absence, %d backups are taken", w.do-3)
		}
		wantEvents(t, h)
		w.do, w.err = 0, errors.New("no space left\n\x1b[2J")
		if failed := run(3 * time.Hour); failed != 3 || w.do != 3 {
			t.Errorf("in three hours, %d attempts of %d fail", failed, w.do)
		}
		wantEvents(t, h, "backup-failed failed")
		r, err := w.m.host.Worker.State.Routine(t.Context(), routine.Backup)
		must(t, err)
		if r.Failures != 3 || r.Why != `no space left\n\x1b[2J` || r.Made != "backup-1" || r.Host != "sv1" {
			t.Errorf("on record is %+v", r)
		}
		w.err = nil
		if failed := run(day); failed > 0 || w.do != 4 {
			t.Errorf("after the failures, %d attempts fail, and there are %d", failed, w.do)
		}
		wantEvents(t, h, "backup-failed recovered")
	})
}

// TestOneHostBacksUp: if a site was brought up on one host and then on another while the first did
// not answer, both have a plan. One of them takes the backup.
func TestOneHostBacksUp(t *testing.T) {
	h, w := newRoutines(t)
	other, v := newRoutines(t)
	for i, m := range []*machine{w.m, v.m} {
		name := []string{"sv1", "sv2"}[i]
		w.fleet.All = append(w.fleet.All[:i], &apply.HostClient{Name: name, Host: m.host.Worker.Host})
	}
	v.fleet = w.fleet
	synctest.Test(t, func(t *testing.T) {
		for range 4 {
			must(t, h.Run(t.Context(), apply.TriggerRoutine, routine.Backup))
			must(t, other.Run(t.Context(), apply.TriggerRoutine, routine.Backup))
			time.Sleep(day)
		}
		if w.do+v.do != 4 {
			t.Errorf("in four days, one host takes %d backups and the other %d", w.do, v.do)
		}
		letGo, err := w.fleet.LockAll(t.Context(), host.Holder{Who: "ada"})
		must(t, err)
		must(t, h.Run(t.Context(), apply.TriggerRoutine, routine.Backup))
		letGo()
		if w.do+v.do != 4 {
			t.Error("a backup is taken while somebody changes the site")
		}
		must(t, h.Run(t.Context(), apply.TriggerRoutine, routine.Backup))
		if w.do+v.do != 5 {
			t.Error("no backup is taken afterwards")
		}
	})
}

// TestWatch: hooks are notified once when something is found twice in a row, and once when it is
// right again.
func TestWatch(t *testing.T) {
	h, w := newRoutines(t)
	sick := Finding{Event: event.NodeUnhealthy, Subject: "node web1", Node: "web1", Why: "\x1b[2J"}
	full := Finding{Event: event.DiskFull, Subject: "disk of host sv1", Why: "91 %"}
	doubtful := sick
	doubtful.Doubtful = true
	look := func(found ...Finding) {
		t.Helper()
		w.found = found
		must(t, h.Run(t.Context(), apply.TriggerRoutine, routine.Watch))
	}
	look()
	look(sick)
	look()
	look(sick)
	wantEvents(t, h)
	look(sick, full)
	wantEvents(t, h, "node-unhealthy unhealthy node web1", "disk-full full disk of host sv1")
	look(sick, full)
	look(doubtful, full)
	wantEvents(t, h)
	look(full)
	wantEvents(t, h, "node-unhealthy recovered node web1")
	look(doubtful, full)
	look(doubtful, full)
	wantEvents(t, h)
	look()
	wantEvents(t, h, "disk-full recovered disk of host sv1")

	look(full)
	wantEvents(t, h, "disk-full full disk of host sv1")
	letGo, err := w.m.host.Worker.Runs.Lock(t.Context(), host.Holder{Who: "ada"})
	must(t, err)
	looks := w.looks
	look()
	letGo()
	if w.looks != looks {
		t.Error("it looks while somebody changes the site")
	}
	w.meddle = func() { letGo, err = w.m.host.Worker.Runs.Lock(t.Context(), host.Holder{Who: "ada"}) }
	look()
	must(t, err)
	letGo()
	w.meddle = nil
	wantEvents(t, h)
}

// TestWatchFails: a look that fails changes no alert and is on record. An alert of which hooks
// cannot be notified is raised at the next look. The end of the watch ends its alerts.
func TestWatchFails(t *testing.T) {
	h, w := newRoutines(t)
	full := Finding{Event: event.DiskFull, Subject: "disk of host sv1", Why: "91 %"}
	run := func(found ...Finding) error {
		w.found = found
		return h.Run(t.Context(), apply.TriggerRoutine, routine.Watch)
	}
	queue := filepath.Join(h.Dirs.Site(h.Key), "hooks")
	must(t, os.WriteFile(queue, nil, 0o600))
	if err := run(full); err == nil {
		t.Error("an event is stored in a file")
	}
	must(t, os.Remove(queue))
	must(t, run(full))
	wantEvents(t, h, "disk-full full disk of host sv1")
	w.err = errors.New("the record of the site is damaged")
	for range 2 {
		if err := run(); err == nil {
			t.Error("a look that fails succeeds")
		}
	}
	record := func() routine.Record {
		r, err := w.m.host.Worker.State.Routine(t.Context(), routine.Watch)
		must(t, err)
		return r
	}
	if r := record(); r.Failures != 2 || r.Why != w.err.Error() {
		t.Errorf("on record is %+v", r)
	}
	w.err = nil
	must(t, run(full))
	wantEvents(t, h)
	if r := record(); r.Failures != 0 {
		t.Errorf("on record is %+v", r)
	}
	must(t, os.WriteFile(apply.AlertsPath(h.Dirs, h.Key), []byte("{"), 0o600))
	var said error
	h.Say = func(err error) { said = err }
	must(t, run(full))
	if !problem.Is(said, problem.Failed) {
		t.Errorf("of damaged alerts, it says %v", said)
	}
	wantEvents(t, h, "disk-full full disk of host sv1")
	_, err := w.m.host.Worker.State.SavePlan(t.Context(), apply.UnattendedPlan{Trigger: apply.TriggerRoutine})
	must(t, err)
	if _, err := os.Stat(apply.AlertsPath(h.Dirs, h.Key)); err == nil {
		t.Error("alerts outlive the watch")
	}
}
