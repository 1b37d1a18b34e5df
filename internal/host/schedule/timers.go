package schedule

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/text/shell"
)

// Timers run command lines of this program for a site at intervals. They are timers of systemd(1)
// if that runs the host, otherwise entries of cron(8).
type Timers struct {
	Key     string // site key
	Program string // absolute path of this program
	Dirs    host.Dirs
	All     []Timer
}

// A Timer is a command line that runs at an interval.
type Timer struct {
	For   string // purpose, such as "mirror"
	Part  string // object of that, such as the name of a volume
	Every time.Duration
	Args  []string
}

// etc is the directory of the host's configuration. It is a variable, so that tests can change it.
var etc = "/etc"

// Apply sets exactly these timers of the site on the host, and removes any others. It returns notes
// for the user.
func (s Timers) Apply() (notes []string, err error) {
	if host.SystemdRuns() {
		if err := s.applyUnits(s.units()); err != nil { // before the crontab is removed
			return nil, err
		}
		return nil, s.removeTable()
	}
	if len(s.All) == 0 {
		return nil, s.removeTable()
	}
	table, notes := s.table()
	if !cronRuns() {
		notes = append(notes, fmt.Sprintf(
			"neither systemd nor cron runs on this host: until one does, no timers of site %s run",
			s.Key))
	}
	if isUpToDate(table) {
		return notes, nil
	}
	return notes, timerProblem(host.WriteFile(table))
}

func timerProblem(err error) error {
	if err == nil {
		return nil
	}
	return problem.New(problem.Failed, "the timers of a site could not be set").Because(err)
}

// environment returns the variables for the host's directories, or nil if they are the default
// ones.
func (s Timers) environment() []string {
	if s.Dirs == (host.Dirs{State: "/var/lib/orrery", Run: "/run/orrery"}) {
		return nil
	}
	return []string{"ORRERY_STATE=" + s.Dirs.State, "ORRERY_RUN=" + s.Dirs.Run}
}

// unitName returns the name of the units of a timer, without its suffix.
func (s Timers) unitName(t Timer) string { return "orrery-" + t.For + "-" + s.Key + "-" + t.Part }

func unitPath(name string) string { return filepath.Join(etc, "systemd", "system", name) }

// units returns, for each timer, a service and the timer that starts it.
func (s Timers) units() []host.File {
	var files []host.File
	for _, t := range s.All {
		var env strings.Builder
		for _, e := range s.environment() {
			fmt.Fprintf(&env, "Environment=%s\n", unitQuote(e))
		}
		service := fmt.Sprintf(madeFor+`[Unit]
Description=orrery: %s %s of %s
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
%sExecStart=%s
Nice=10
IOSchedulingClass=idle
`, s.Key, t.For, t.Part, s.Key, env.String(), s.commandLine(quoteCommand, t))
		timer := fmt.Sprintf(madeFor+`[Unit]
Description=orrery: %s %s of %s every %s

[Timer]
OnActiveSec=1min
OnUnitActiveSec=%ds

[Install]
WantedBy=timers.target
`, s.Key, t.For, t.Part, s.Key, t.Every, int(t.Every.Seconds()))
		files = append(files,
			host.File{Path: unitPath(s.unitName(t) + ".service"), Content: []byte(service), Mode: 0o644},
			host.File{Path: unitPath(s.unitName(t) + ".timer"), Content: []byte(timer), Mode: 0o644})
	}
	return files
}

// commandLine returns the command line of a timer, quoted by the given function.
func (s Timers) commandLine(quote func(string) string, t Timer) string {
	line := quote(s.Program)
	for _, arg := range t.Args {
		line += " " + quote(arg)
	}
	return line
}

// unitQuote quotes a word for a unit (systemd.syntax(7)).
func unitQuote(word string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`).Replace(word) + `"`
}

// quoteCommand quotes a word for a command line in a unit (systemd.service(5)).
func quoteCommand(word string) string { return strings.ReplaceAll(unitQuote(word), "$", "$$") }

// applyUnits writes units and starts timers, and removes those of the site that are no longer
// needed.
func (s Timers) applyUnits(units []host.File) error {
	wanted, timers, changed := map[string]bool{}, []string{}, false
	for _, f := range units {
		wanted[f.Path] = true
		if isUpToDate(f) && (!strings.HasSuffix(f.Path, ".timer") || enabled(f.Path)) {
			continue
		}
		if err := host.WriteFile(f); err != nil {
			return timerProblem(err)
		}
		if strings.HasSuffix(f.Path, ".timer") {
			timers = append(timers, filepath.Base(f.Path))
		}
		changed = true
	}
	gone := s.staleUnits(wanted)
	for _, path := range gone {
		var err error
		if strings.HasSuffix(path, ".timer") {
			err = systemctl("systemctl", "--quiet", "disable", "--now", filepath.Base(path))
		}
		if err == nil { // keep the file of a timer that still runs, so that the next call finds it
			err = os.Remove(path)
		}
		if err != nil {
			return timerProblem(err)
		}
	}
	if !changed && len(gone) == 0 {
		return nil
	}
	if err := systemctl("systemctl", "daemon-reload"); err != nil || len(timers) == 0 {
		return timerProblem(err)
	}
	if err := systemctl(append([]string{"systemctl", "--quiet", "enable"}, timers...)...); err != nil {
		return timerProblem(err)
	}
	return timerProblem(systemctl(append([]string{"systemctl", "restart"}, timers...)...))
}

// enabled reports whether a timer is started at boot. If not, a run was killed before it enabled
// the timer.
func enabled(path string) bool {
	_, err := os.Lstat(filepath.Join(filepath.Dir(path), "timers.target.wants", filepath.Base(path)))
	return err == nil
}

// owns reports whether a file was made for this site. It reads that from the file, because the name
// of one site may be a prefix of another.
func (s Timers) owns(path string) bool {
	text, err := os.ReadFile(path)
	return err == nil && strings.HasPrefix(string(text), fmt.Sprintf(madeFor, s.Key))
}

const madeFor = "# Made by orrery up for site %s; orrery down removes it.\n"

// staleUnits returns the units of this site that are not wanted.
func (s Timers) staleUnits(wanted map[string]bool) []string {
	var gone []string
	found, _ := filepath.Glob(unitPath("orrery-*-" + s.Key + "-*"))
	for _, path := range found {
		if !wanted[path] && s.owns(path) {
			gone = append(gone, path)
		}
	}
	return gone
}

// tablePath returns the path of the site's crontab. Cron ignores files with a dot in their name.
func (s Timers) tablePath() string {
	return filepath.Join(etc, "cron.d", "orrery-"+strings.ReplaceAll(s.Key, ".", "-"))
}

// table returns the site's crontab, with notes on intervals that cron does not support.
func (s Timers) table() (f host.File, notes []string) {
	var text strings.Builder
	fmt.Fprintf(&text, madeFor+"SHELL=/bin/sh\nPATH=%s\n", s.Key, host.Path)
	for _, t := range s.All {
		when, really := cronTime(t.Every, s.Key+" "+t.Part)
		if really != t.Every {
			notes = append(notes, fmt.Sprintf("%s %s runs every %s: cron cannot express every %s", t.For, t.Part, really, t.Every))
		}
		line := s.commandLine(shell.Quote, t)
		if env := s.environment(); len(env) > 0 {
			line = "env " + shell.Quote(env[0]) + " " + shell.Quote(env[1]) + " " + line
		}
		line = strings.ReplaceAll(line+" >> "+shell.Quote(s.log(t))+" 2>&1", "%", `\%`) // crontab(5): % ends a line
		fmt.Fprintf(&text, "%s root %s\n", when, line)
	}
	return host.File{Path: s.tablePath(), Content: []byte(text.String()), Mode: 0o644}, notes
}

// log returns the path of the output of a timer of cron.
func (s Timers) log(t Timer) string {
	return filepath.Join(s.Dirs.State, "log", t.For+"-"+s.Key+".log")
}

// cronTime returns the times of crontab(5) for an interval. It rounds the interval down to one that
// a crontab can express: minutes that divide an hour, hours that divide a day, a day, or a week.
// The minute and hour depend on a hash of what, so that not all timers start at once.
func cronTime(every time.Duration, what string) (when string, really time.Duration) {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(what))
	at := int(sum.Sum32() >> 1)
	minutes, hours := int(every/time.Minute), int(every/time.Hour)
	const day = 24 * time.Hour
	switch {
	case every >= 7*day:
		return fmt.Sprintf("%d %d * * %d", at%60, at/60%24, at%7), 7 * day
	case every >= day:
		return fmt.Sprintf("%d %d * * *", at%60, at/60%24), day
	case hours >= 1:
		n := divisor(24, hours)
		return fmt.Sprintf("%d %s * * *", at%60, cronStep(n)), time.Duration(n) * time.Hour
	}
	n := divisor(60, minutes)
	return cronStep(n) + " * * * *", time.Duration(n) * time.Minute
}

// divisor returns the largest divisor of a number that is at most limit.
func divisor(of, limit int) int {
	for n := min(limit, of-1); n > 1; n-- {
		if of%n == 0 {
			return n
		}
	}
	return 1
}

// cronStep returns "every n-th" in the syntax of crontab(5).
func cronStep(n int) string {
	if n == 1 {
		return "*"
	}
	return fmt.Sprintf("*/%d", n)
}

// isUpToDate reports whether a file exists with the desired content.
func isUpToDate(f host.File) bool {
	text, err := os.ReadFile(f.Path)
	return err == nil && string(text) == string(f.Content)
}

// removeTable removes the site's crontab, if there is one.
func (s Timers) removeTable() error {
	if !s.owns(s.tablePath()) {
		return nil
	}
	if err := os.Remove(s.tablePath()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return timerProblem(err)
	}
	return nil
}
