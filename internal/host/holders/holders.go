// Package holders finds the processes that hold a lock on a file: a caller that waits for the lock
// can name them. The kernel knows them, so no holder has to say who it is, and none can be
// forgotten.
package holders

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host/process"
	"orrery/internal/text/pattern"
	"orrery/internal/text/sanitize"
)

// A Process holds a lock. What is not known of it is empty.
type Process struct {
	Pid     int
	Who     string    // who called it by sudo, else the name or number of its user
	Command string    // its command line
	Began   time.Time // when the process began
}

// Of returns the processes that hold a lock on a file by flock(2), as far as this process can see them.
func Of(f *os.File) []Process { return table(process.Host).of(f) }

// table is a directory like /proc.
type table process.Table

func (t table) of(f *os.File) []Process {
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	var all []Process
	for _, pid := range t.lockers(st) {
		all = append(all, t.process(pid))
	}
	return all
}

// lockers returns the process ids in the kernel's list of locks. A file system may have another
// device number there than stat(2) gives, as Btrfs has: then the number of the file decides.
func (t table) lockers(st *syscall.Stat_t) []int {
	list, err := os.Open(filepath.Join(string(t), "locks"))
	if err != nil {
		return nil
	}
	defer list.Close()
	var exact, similar []int
	device := fmt.Sprintf("%02x:%02x", unix.Major(st.Dev), unix.Minor(st.Dev))
	for lines := bufio.NewScanner(list); lines.Scan(); {
		// 1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF; one that waits has "->" before FLOCK.
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || fields[1] != "FLOCK" {
			continue
		}
		pid, err := strconv.Atoi(fields[4])
		at := strings.LastIndex(fields[5], ":")
		if err != nil || pid <= 0 || at < 0 || fields[5][at+1:] != strconv.FormatUint(st.Ino, 10) {
			continue
		}
		if similar = append(similar, pid); fields[5][:at] == device {
			exact = append(exact, pid)
		}
	}
	if len(exact) == 0 {
		exact = similar
	}
	slices.Sort(exact)
	return slices.Compact(exact)
}

func (t table) file(pid int, name string) string { return process.Table(t).File(pid, name) }

// maxCommandBytes is how much of a command line is told.
const maxCommandBytes = 120

// process looks at a process, which may have ended.
func (t table) process(pid int) Process {
	p := Process{Pid: pid, Who: t.caller(pid), Began: t.began(pid)}
	text, err := os.ReadFile(t.file(pid, "cmdline"))
	if err != nil || len(text) == 0 {
		return p
	}
	words := strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	words[0] = filepath.Base(words[0])
	if p.Command = sanitize.Line(strings.Join(words, " ")); len(p.Command) > maxCommandBytes {
		p.Command = strings.ToValidUTF8(p.Command[:maxCommandBytes], "") + "…"
	}
	return p
}

// userName is what the name of a user looks like.
var userName = pattern.New(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)

// caller returns who has called a process: sudo writes that into the environment of what it starts.
func (t table) caller(pid int) string {
	environ, _ := os.ReadFile(t.file(pid, "environ"))
	for variable := range strings.SplitSeq(string(environ), "\x00") {
		if name, ok := strings.CutPrefix(variable, "SUDO_USER="); ok && userName().MatchString(name) {
			return name
		}
	}
	var st unix.Stat_t
	switch err := unix.Stat(t.file(pid, ""), &st); {
	case err != nil:
		return ""
	case st.Uid == 0:
		return "root"
	default:
		return fmt.Sprintf("user %d", st.Uid)
	}
}

// ticksPerSecond is the unit of times in /proc/PID/stat (USER_HZ).
const ticksPerSecond = 100

// began returns when a process began.
func (t table) began(pid int) time.Time {
	fields := process.Table(t).Stat(pid)
	uptime, err := os.ReadFile(filepath.Join(string(t), "uptime"))
	if err != nil || len(fields) < 20 {
		return time.Time{}
	}
	up, _, _ := strings.Cut(string(uptime), " ")
	seconds, err := strconv.ParseFloat(up, 64)
	ticks, err2 := strconv.ParseFloat(fields[19], 64) // the 22nd of proc(5)
	if err != nil || err2 != nil {
		return time.Time{}
	}
	age := time.Duration((seconds - ticks/ticksPerSecond) * float64(time.Second))
	return time.Now().Add(-max(age, 0))
}

// Words names processes in a message.
func Words(all []Process) string {
	if len(all) == 0 {
		return "a process that cannot be seen from here"
	}
	var words []string
	for _, p := range all[:min(len(all), maxNamed)] {
		words = append(words, p.String())
	}
	if more := len(all) - maxNamed; more > 0 {
		words = append(words, fmt.Sprintf("%d more", more))
	}
	return strings.Join(words, ", ")
}

// maxNamed is how many processes a message names.
const maxNamed = 3

// String returns who a process is, what it does and since when.
func (p Process) String() string {
	if p.Who == "" {
		return fmt.Sprintf("a program that process %d, which has ended, has started", p.Pid)
	}
	text := fmt.Sprintf(`%s runs "%s" (process %d)`, p.Who, p.Command, p.Pid) // which is shown as text already
	if !p.Began.IsZero() {
		text += " since " + time.Since(p.Began).Round(time.Second).String()
	}
	return text
}
