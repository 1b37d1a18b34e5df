package test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
)

// befall runs a command with a mishap before or during it.
func (c *chaos) befall(args []string) (r result, mishap string) {
	c.Helper()
	span := cmp.Or(c.spans[args[0]], 500*time.Millisecond)
	at := time.Duration(c.random.Float64() * float64(span))
	switch c.random.IntN(13) {
	case 0, 1, 2, 3, 12:
		r, late, _ := c.struck(args, at, syscall.SIGKILL)
		if late {
			return r, ""
		}
		return r, fmt.Sprintf("killed: after %s", at.Round(time.Millisecond))
	case 4:
		r, late, died := c.struck(args, at, syscall.SIGINT)
		switch {
		case late:
			return r, ""
		case died: // it was killed before it installed its signal handler
			return r, fmt.Sprintf("killed: by Ctrl-C after %s", at.Round(time.Millisecond))
		}
		return r, fmt.Sprintf("interrupted: after %s", at.Round(time.Millisecond))
	case 5, 6:
		room := []int64{0, 16, 256, 4096}[c.random.IntN(4)]
		c.fill(room)
		defer c.unfill()
		return c.run(args...), fmt.Sprintf("full disk: but for %d KiB", room)
	case 7:
		without := []string{"lxc-start", "lxc-start", "runuser", "tar"}[c.random.IntN(4)]
		env := c.env
		c.env = append(slices.Clone(c.env), "PATH="+c.pathWithout(without))
		defer func() { c.env = env }()
		return c.run(args...), "lacking: " + without
	case 8:
		jump := []time.Duration{time.Hour, -time.Hour, 40 * 24 * time.Hour, -40 * 24 * time.Hour}[c.random.IntN(4)]
		c.clock += jump
		return c.after(c.clock).run(args...), "clock: set by " + jump.String()
	case 9:
		c.reboot()
		return c.run(args...), "reboot: before"
	}
	r = c.run(args...)
	if r.status == 0 {
		c.spans[args[0]] = (cmp.Or(c.spans[args[0]], r.took) + r.took) / 2
	}
	return r, ""
}

// struck runs a command and, after a while, sends a signal to it and all of its descendants, unless
// it has ended. It reports whether the command died of the signal.
func (c *chaos) struck(args []string, after time.Duration, signal syscall.Signal) (r result, late, died bool) {
	c.Helper()
	cmd, out, errs := c.command(args...)
	began := time.Now()
	wait, err := begin(cmd)
	if err != nil {
		c.Fatal(err)
	}
	struck := make(chan bool, 1)
	timer := time.AfterFunc(after, func() { struck <- syscall.Kill(-cmd.Process.Pid, signal) == nil })
	_ = wait()
	late = timer.Stop() || !<-struck
	status := cmd.ProcessState.ExitCode()
	if by := cmd.ProcessState.Sys().(syscall.WaitStatus); by.Signaled() {
		status, died = 128+int(by.Signal()), true
	}
	return result{c.site, args, status, out.String(), errs.String(), time.Since(began)}, late, died
}

// documented are the exit statuses of docs/commands.md.
func documented(status int) bool {
	return status >= 0 && status <= 14 || status == 130 || status > 100 && status <= 200
}

var (
	goRuntime = regexp.MustCompile(`(?m)^(goroutine \d|panic:|fatal error:|runtime error)`)
	withCure  = regexp.MustCompile(`cure: |\([^()]*[a-z][^()]*(\([^()]*\)[^()]*)*\)|same command|orrery [a-z]`)
)

// wantSaid wants that a run that failed says why and what to do, and that one which nothing befell
// fails only for a reason.
func (c *chaos) wantSaid(r result, mishap string) {
	c.Helper()
	text := fmt.Sprintf("orrery %s (%s): exit status %d\n%s%s", strings.Join(r.args, " "), mishap, r.status, r.out, r.errs)
	if goRuntime.MatchString(r.out + r.errs) {
		c.Errorf("a trace of the program itself: %s", text)
	}
	if strings.HasPrefix(mishap, "killed") {
		return
	}
	if !documented(r.status) {
		c.Errorf("an exit status that is not documented: %s", text)
	}
	if strings.HasPrefix(mishap, "full disk") && makesRoom(r.args) && r.status != 0 {
		c.Errorf("it would make room, but does not: %s", text)
	}
	switch r.status {
	case 0, 12, 10, 11:
	default:
		// If the command itself failed on a node, there is no cure.
		theirs := r.args[0] == "exec" && strings.Contains(r.out+r.errs, "exit status")
		if !theirs && (len(strings.TrimSpace(r.errs)) == 0 || !withCure.MatchString(r.errs)) {
			c.Errorf("no cure is told: %s", text)
		}
		c.Logf("%s", text)
	}
}

// makesRoom reports whether a command is one that users run when a disk is full.
func makesRoom(args []string) bool {
	return args[0] == "down" || slices.Contains([]string{"release prune", "snapshot rm", "twin destroy"},
		strings.Join(args[:min(2, len(args))], " "))
}

// A chaosDisk is a small file system with the state directory of histories.
type chaosDisk struct {
	home    host.Dirs
	ballast string
}

// newChaosDisk makes the disk, with the base layer of all nodes, and removes it when the test ends.
func newChaosDisk(t *testing.T, lane int, base string) *chaosDisk {
	t.Helper()
	home := newHome(t, fmt.Sprint("chaos", lane))
	disk := home.State
	out, err := sh(fmt.Sprintf(`set -e; size=$(du -sm --apparent-size %[1]s | cut -f1)
truncate -s $((2*size + 900))M %[2]s.img; mkfs.ext4 -q -m 0 %[2]s.img; mount -o loop %[2]s.img %[2]s; chmod 711 %[2]s; mkdir -m 700 %[2]s/store; cp -a %[1]s %[2]s/store/ 2>&1`,
		base, disk))
	if err != nil {
		t.Fatalf("no disk: %v %s", err, out)
	}
	return &chaosDisk{home, filepath.Join(disk, "ballast")}
}

// fill leaves the given number of KiB free on the disk.
func (d *chaosDisk) fill(room int64) {
	var fs unix.Statfs_t
	if unix.Statfs(filepath.Dir(d.ballast), &fs) == nil {
		_, _ = sh(fmt.Sprintf("fallocate -l %d %s", max(0, int64(fs.Bavail)*fs.Bsize-room<<10), d.ballast))
	}
}

func (d *chaosDisk) unfill() { _ = os.Remove(d.ballast) }

// pathWithout returns a PATH with all programs of this host except one.
func (c *chaos) pathWithout(program string) string {
	c.Helper()
	dir := c.TempDir()
	for _, from := range filepath.SplitList("/usr/sbin:/usr/bin:/sbin:/bin") {
		for _, path := range glob(from + "/*") {
			if name := filepath.Base(path); name != program {
				_ = os.Symlink(path, filepath.Join(dir, name))
			}
		}
	}
	return dir
}
