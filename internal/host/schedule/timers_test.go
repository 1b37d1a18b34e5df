package schedule

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/host"
)

func TestCronTime(t *testing.T) {
	for _, c := range []struct {
		every, really time.Duration
		when          string
	}{
		{time.Second, time.Minute, "* * * * *"},
		{5 * time.Minute, 5 * time.Minute, "*/5 * * * *"},
		{7 * time.Minute, 6 * time.Minute, "*/6 * * * *"},
		{45 * time.Minute, 30 * time.Minute, "*/30 * * * *"},
		{time.Hour, time.Hour, "M * * * *"},
		{90 * time.Minute, time.Hour, "M * * * *"},
		{5 * time.Hour, 4 * time.Hour, "M */4 * * *"},
		{23 * time.Hour, 12 * time.Hour, "M */12 * * *"},
		{24 * time.Hour, 24 * time.Hour, "M H * * *"},
		{100 * time.Hour, 24 * time.Hour, "M H * * *"},
		{200 * time.Hour, 168 * time.Hour, "M H * * D"},
	} {
		when, really := cronTime(c.every, "karoo archive")
		got, want := strings.Fields(when), strings.Fields(c.when)
		for i, field := range want {
			if strings.Contains("MHD", field) {
				want[i] = got[i]
			}
		}
		if really != c.really || strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("every %s: %q, which is every %s; want %q, %s", c.every, when, really, c.when, c.really)
		}
	}
}

// mirrors returns timers for volumes, by name.
func mirrors(every map[string]time.Duration) (all []Timer) {
	for _, name := range slices.Sorted(maps.Keys(every)) {
		all = append(all, Timer{"mirror", name, every[name], []string{"host-run", "karoo", "mirror", name}})
	}
	return all
}

// TestTimers creates, changes and removes timers, with cron and with systemd.
func TestTimers(t *testing.T) {
	dir := t.TempDir()
	old := etc
	etc = dir
	t.Cleanup(func() { etc = old })
	s := Timers{
		Key: "karoo", Program: "/opt/100%/orrery", Dirs: host.Dirs{State: "/var/lib/orrery", Run: "/run/orrery"},
		All: mirrors(map[string]time.Duration{"archive": time.Hour, "db": 7 * time.Minute}),
	}
	table, notes := s.table()
	lines := strings.Split(string(table.Content), "\n")
	if len(lines) != 6 || !strings.HasSuffix(lines[3],
		` root '/opt/100\%/orrery' 'host-run' 'karoo' 'mirror' 'archive' >> '/var/lib/orrery/log/mirror-karoo.log' 2>&1`) ||
		!strings.HasPrefix(lines[4], "*/6 * * * * root ") || table.Path != filepath.Join(dir, "cron.d", "orrery-karoo") {
		t.Errorf("the table %s is\n%s", table.Path, table.Content)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "every 6m0s") {
		t.Errorf("notes are %q", notes)
	}
	units := s.units()
	if len(units) != 4 || !strings.Contains(string(units[0].Content),
		`ExecStart="/opt/100%%/orrery" "host-run" "karoo" "mirror" "archive"`) ||
		!strings.Contains(string(units[1].Content), "OnUnitActiveSec=3600s") ||
		filepath.Base(units[1].Path) != "orrery-mirror-karoo-archive.timer" {
		t.Errorf("units are %s\n%s", units[0].Content, units[1].Content)
	}
	if host.SystemdRuns() {
		return // the rest would change the timers of this machine
	}
	other := Timers{Key: "karoo-dev1", Program: "/x", Dirs: host.Dirs{State: "/x y", Run: "/z"}, All: s.All}
	for _, each := range []Timers{s, other} {
		if _, err := each.Apply(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := (Timers{Key: "karoo.dev1"}).Apply(); err != nil { // must not remove the site's timers
		t.Error(err)
	}
	text, err := os.ReadFile(other.tablePath())
	if err != nil || !strings.Contains(string(text), "root env 'ORRERY_STATE=/x y' 'ORRERY_RUN=/z' '/x' ") {
		t.Errorf("%s (%v)", text, err)
	}
	if _, err := (Timers{Key: "karoo"}).Apply(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "cron.d")); len(left) != 1 || left[0].Name() != "orrery-karoo-dev1" {
		t.Errorf("left is %v", left)
	}
}

// TestTimerUnits applies timers with a fake systemctl that records its calls.
func TestTimerUnits(t *testing.T) {
	dir := t.TempDir()
	old := etc
	etc = dir
	t.Cleanup(func() { etc = old })
	script := `#!/bin/sh
cd "${0%/*}"; echo $* >> log; mkdir -p systemd/system/timers.target.wants; cd systemd/system/timers.target.wants
case "$*" in
*enable*) shift 2; for t; do ln -sf "../$t" .; done;;
*disable*) rm -f "$4";;
esac
`
	if err := os.WriteFile(filepath.Join(dir, "systemctl"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	asked := func(s Timers, want string) {
		t.Helper()
		os.Remove(dir + "/log")
		if err := s.applyUnits(s.units()); err != nil {
			t.Fatal(err)
		}
		if log, _ := os.ReadFile(dir + "/log"); strings.ReplaceAll(string(log), "\n", "; ") != want {
			t.Errorf("systemctl was asked %q, want %q", log, want)
		}
	}
	s := Timers{Key: "karoo", Program: "/x", All: mirrors(map[string]time.Duration{"a": time.Hour, "b": time.Hour})}
	asked(s, "daemon-reload; --quiet enable orrery-mirror-karoo-a.timer orrery-mirror-karoo-b.timer; restart orrery-mirror-karoo-a.timer orrery-mirror-karoo-b.timer; ")
	asked(s, "")
	s.Program = "/elsewhere"
	asked(s, "daemon-reload; ")
	s.All = mirrors(map[string]time.Duration{"a": time.Minute})
	asked(s, "--quiet disable --now orrery-mirror-karoo-b.timer; daemon-reload; --quiet enable orrery-mirror-karoo-a.timer; restart orrery-mirror-karoo-a.timer; ")
	s.All = nil
	asked(s, "--quiet disable --now orrery-mirror-karoo-a.timer; daemon-reload; ")
	if left, _ := filepath.Glob(dir + "/systemd/system/*mirror*"); len(left) > 0 {
		t.Errorf("left is %v", left)
	}
}
