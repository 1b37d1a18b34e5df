// Package holders finds the processes that hold a lock on a file.
//
// A caller that waits for the lock can name them. The list comes from the kernel, so a holder need
// not record itself, and no holder is missing.
//
// It is a package of its own because its tests are processes of their own, which hold locks.
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

// A Process holds a lock. Unknown fields are empty.
type Process struct {
	Pid     int
	Who     string    // user who called it by sudo, otherwise the name or number of its user
	Command string    // its command line
	Began   time.Time // when the process started
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

// lockers returns the process ids in the kernel's list of locks. On a file system like Btrfs, the
// device number in that list differs from that of stat(2). If no entry matches, the inode number
// decides.
func (t table) lockers(st *syscall.Stat_t) []int {
	list, err := os.Open(filepath.Join(string(t), "locks"))
	if err != nil {
		return nil
	}
	defer list.Close()
	var exact, similar []int
	device := fmt.Sprintf("%02x:%02x", unix.Major(st.Dev), unix.Minor(st.Dev))
	for lines := bufio.NewScanner(list); lines.Scan(); {
		// An entry is "1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF". One that waits has "->"
		// before FLOCK.
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

// maxCommandBytes limits the length of a command line in a message.
const maxCommandBytes = 120

// process returns what is known of a process, which may have ended.
func (t table) process(pid int) Process {
	p := Process{Pid: pid, Who: t.caller(pid), Began: t.startTime(pid)}
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

// userName matches the name of a user.
var userName = pattern.New(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)

// caller returns the user who called a process. sudo puts that into the environment of its
// children.
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

// startTime returns when a process started.
func (t table) startTime(pid int) time.Time {
	fields := process.Table(t).Stat(pid)
	uptime, err := os.ReadFile(filepath.Join(string(t), "uptime"))
	if err != nil || len(fields) < 20 {
		return time.Time{}
	}
	up, _, _ := strings.Cut(string(uptime), " ")
	seconds, err := strconv.ParseFloat(up, 64)
	ticks, err2 := strconv.ParseFloat(fields[19], 64) // field 22 of proc(5)
	if err != nil || err2 != nil {
		return time.Time{}
	}
	age := time.Duration((seconds - ticks/ticksPerSecond) * float64(time.Second))
	return time.Now().Add(-max(age, 0))
}

// Describe returns the names of processes for a message.
func Describe(all []Process) string {
	if len(all) == 0 {
		return "a process that is not visible on this host"
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

// maxNamed limits how many processes a message names.
const maxNamed = 3

// String returns who runs a process, its command, and since when.
func (p Process) String() string {
	if p.Who == "" {
		return fmt.Sprintf("a program started by process %d, which has ended", p.Pid)
	}
	text := fmt.Sprintf(`%s runs "%s" (process %d)`, p.Who, p.Command, p.Pid) // Command is already safe to print
	if !p.Began.IsZero() {
		text += " since " + time.Since(p.Began).Round(time.Second).String()
	}
	return text
}
