package test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"orrery/internal/host"
	"orrery/internal/host/schedule"
)

// watchers returns the processes of the program that currently work on this site directory.
func (s *site) watchers() []int {
	var all []int
	for _, path := range glob("/proc/[0-9]*/cmdline") {
		text, _ := os.ReadFile(path)
		args := strings.Split(string(text), "\x00")
		if slices.Contains(args, s.name) && slices.Contains(args, "trial") {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			all = append(all, pid)
		}
	}
	return all
}

// trialOver waits until no release is on trial.
func (s *site) trialOver() {
	s.Helper()
	s.eventually(func() error {
		for number, r := range s.releases() {
			if r.Trial {
				return errors.New("release " + strconv.Itoa(number) + " is on trial")
			}
		}
		return nil
	})
}

// wantWatched waits until a process watches the release on trial, or the trial is over. While that process
// executes its program, it has no command line, and watchers does not find it.
func (s *site) wantWatched() {
	s.Helper()
	s.eventually(func() error {
		lock := filepath.Join(s.dirs.Site(s.name), "trial.lock")
		for _, r := range s.releases() {
			if r.Trial && !host.IsLocked(lock) {
				return errors.New(lock + " is free")
			}
		}
		return nil
	})
}

// wantUnwatched wants that nobody watches over the site any more.
func (s *site) wantUnwatched() {
	s.Helper()
	s.eventually(func() error {
		if w := s.watchers(); len(w) > 0 {
			return errors.New("processes still at work: " + strconv.Itoa(w[0]))
		}
		// A process that ends loses its command line before its locks.
		if lock := filepath.Join(s.dirs.Site(s.name), "trial.lock"); host.IsLocked(lock) {
			return errors.New(lock + " is still held: " + host.DescribeHolder(lock))
		}
		return nil
	})
}

// TestTrial: a release on trial stays if it is confirmed or stays healthy, and goes back on its own
// otherwise.
func TestTrial(t *testing.T) {
	t.Parallel()
	s := newReleased(t, "it-trial", 108)
	s.write("roles/greeter2/role.toml",
		greeterRole+"[[health]]\ncommand = [\"test\", \"!\", \"-e\", \"/root/sick\"]\ntimeout = \"20s\"\nwithin = \"20s\"\n")
	heard := s.hears("trial-ended", "switch-failed")
	s.add(`
[hook.fails]
on = ["trial-ended"]
command = ["/bin/sh", "-c", "sleep 300"]
timeout = "1s"
`)
	s.do("up")
	s.do("stage", "--release", "701")

	// Its checks pass.
	s.run("switch", "--release", "701", "--confirm-within", "2s", "--wait").
		want(0, "on trial until", "release 701 is confirmed", "health checks held")
	s.wantLive(701)
	s.run("confirm").want(0, "release 701 is confirmed")
	s.trialBack()

	// The same, without waiting for it.
	s.run("switch", "--release", "701", "--confirm-within", "3s").
		want(12, "on trial until .* otherwise it goes back to release none")
	s.trialOver()
	s.wantLive(701)
	s.run("confirm").want(0, "release 701 is confirmed .*health checks held")
	s.wantUnwatched()
	s.trialBack()

	// No user confirms it.
	lines := s.lines("store")
	s.run("switch", "--release", "701", "--confirm-within", "1s", "--confirm-by", "hand", "--wait").
		want(13, "release 701 has gone back: it was not confirmed")
	s.wantLive(0)
	s.wantKept("store", lines)
	s.run("confirm").want(13, "release 701 has gone back: it was not confirmed")
	s.wantLive(0)
	s.run("rollback").want(3, "no former release")

	// A user confirms it. Until then, other commands know of the trial.
	s.do("stage", "--release", "701")
	s.run("switch", "--release", "701", "--confirm-within", "10m", "--confirm-by", "hand").want(12)
	if !s.releases()[701].Trial {
		t.Error("release 701 is not on trial")
	}
	s.run("release", "ls").want(0, "(?m)^701 +on trial")
	s.do("stage", "--release", "700")
	s.run("switch", "--release", "700").want(3, "release 701 is on trial until", "orrery confirm or orrery rollback first")
	s.run("stage", "--release", "701").want(3, "is live")
	s.run("rollback", "web0").want(3, "release 701 is on trial with 3 nodes, which can only go back together")
	s.run("release", "prune", "--keep", "0").want(0, "700")
	s.run("plan").want(0)
	s.wantLive(701)
	s.run("status").want(0, "unless it is confirmed by then .orrery confirm., it goes back to release")
	s.run("confirm").want(0, "release 701 is confirmed \\(by hand\\)")
	s.wantUnwatched()
	s.wantLive(701)
	s.trialBack()

	// It becomes unhealthy, long before the time is over.
	began := time.Now()
	s.run("switch", "--release", "701", "--confirm-within", "10m").want(12)
	s.sh("web1", "touch /root/sick")
	s.trialOver()
	s.run("confirm").want(13, "release 701 has gone back: node web1 is unhealthy")
	s.wantLive(0)
	if took := time.Since(began); took > 2*time.Minute {
		t.Errorf("it went back only after %s", took)
	}
	s.in(701, "web1", "rm /root/sick")
	s.wantUnwatched()

	// A rollback ends it.
	s.do("stage", "--release", "701")
	s.run("switch", "--release", "701", "--confirm-within", "10m").want(12)
	s.do("rollback")
	s.wantLive(0)
	s.run("confirm").want(13, "release 701 has gone back: it was rolled back")
	s.wantUnwatched()

	// Hooks were run for each, and no command waited for one that hangs.
	heard("trial-ended confirmed", "trial-ended confirmed", "trial-ended reverted", "trial-ended confirmed",
		"trial-ended reverted", "trial-ended reverted")
	s.eventually(func() error {
		all := s.do("journal", "--runs", "0") // there are more than the 20 that it shows by default
		if n := strings.Count(all, "hook fails: trial-ended: not done within 1s"); n != 6 {
			return fmt.Errorf("the journal tells %d times of the hook that hangs:\n%s", n, all)
		}
		return nil
	})

	// Down ends it, too.
	s.do("stage", "--release", "701")
	s.run("switch", "--release", "701", "--confirm-within", "10m").want(12)
	s.do("down")
	s.wantUnwatched()
	s.wantNoTrace()
	s.run("confirm").want(3, "no release is on trial")
	s.do("up")
	s.wantLive(701)
}

// trialBack rolls back, and stages the live release again.
func (s *site) trialBack() {
	s.Helper()
	s.do("rollback")
	s.wantLive(0)
	s.do("stage", "--release", "701")
}

// TestTrialAlone: a trial needs neither the process that began it nor its terminal. Killing its
// watcher is reported to the user.
func TestTrialAlone(t *testing.T) {
	t.Parallel()
	s := newReleased(t, "it-trialalone", 109)
	s.do("up")
	s.do("stage", "--release", "701")
	// Wherever the switch is killed, there is no trial without a watcher.
	for range 5 {
		s.killed(time.Duration(rand.Float64()*float64(600*time.Millisecond)), "switch", "--release", "701",
			"--confirm-within", "10m")
		if s.releases()[701].Trial {
			if len(s.watchers()) != 1 {
				t.Errorf("the trial is watched by %v", s.watchers())
			}
			s.do("rollback")
		}
		s.do("up")
		s.wantLive(0)
		s.wantUnwatched()
		s.do("stage", "--release", "701")
	}

	cmd, out, _ := s.command("switch", "--release", "701", "--confirm-within", "15s", "--confirm-by", "hand", "--wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	wait, err := begin(cmd)
	if err != nil {
		t.Fatal(err)
	}
	s.eventually(func() error {
		if !s.releases()[701].Trial {
			return errors.New("not on trial yet")
		}
		return nil
	})
	s.eventually(func() error {
		if len(s.watchers()) == 0 {
			return errors.New("nobody watches")
		}
		return nil
	})
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGHUP)
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	_ = wait()
	if cmd.ProcessState.Exited() {
		t.Errorf("the switch had ended by itself: %s", out)
	}
	s.wantLive(701)
	s.trialOver()
	s.wantLive(0)
	s.run("confirm").want(13, "it was not confirmed")
	s.run("journal", "-n", "1").want(0, "trial")
	s.wantUnwatched()
}

// TestTrialForgotten: if a watcher was killed and no process restarts it, status reports this, and
// the next command that changes the site handles the trial. A twin whose waiter was killed is
// destroyed by the next command that changes the site after its time.
func TestTrialForgotten(t *testing.T) {
	if host.SystemdRuns() {
		t.Skip("systemd starts again what was killed")
	}
	t.Parallel()
	home := newHome(t, "forgottentrial") // commands that change other sites here would handle the trial
	s := newReleased(t, "it-forgotten", 123)
	s.keepIn(home)
	s.do("up")
	s.do("stage", "--release", "701")
	const unwatched = "on trial until .* but the process that watched it has ended"

	// Its time is not over, so it is watched again.
	s.run("switch", "--release", "701", "--confirm-within", "10m").want(12)
	s.killWatchers()
	s.run("status").want(0, unwatched)
	s.run("snapshot").want(0, "on trial until")
	s.eventually(func() error {
		if len(s.watchers()) != 1 {
			return errors.New("nobody watches")
		}
		return nil
	})
	if r := s.run("status").want(0, "then it is confirmed or goes back"); strings.Contains(r.errs, "nobody") {
		t.Errorf("a trial that is watched: %s", r.errs)
	}
	s.do("rollback")
	s.wantLive(0)
	s.wantUnwatched()

	// Its time is over, and its checks were not watched, so it goes back.
	s.do("stage", "--release", "701")
	s.run("switch", "--release", "701", "--confirm-within", "6s").want(12)
	s.killWatchers()
	time.Sleep(6 * time.Second)
	s.run("status").want(0, unwatched)
	s.run("confirm").want(13, "it ended while no process watched it")
	s.wantLive(0)

	s.do("down")
	s.wantNoTrace()
}

// TestTwinForgotten: a twin whose waiter was killed is reported as such. The next command that
// changes a site watches it again, or destroys it at once if it is overdue. The test has its own
// home, since other tests would do that, too.
func TestTwinForgotten(t *testing.T) {
	if host.SystemdRuns() {
		t.Skip("systemd starts again what was killed")
	}
	t.Parallel()
	home := newHome(t, "forgottentwin")
	s := newSite(t, "it-forgottentwin", fmt.Sprintf(soleSite, 119), nil)
	s.keepIn(home)
	s.do("up")
	key := s.name + ".f"
	waiter := func() int {
		waiting, err := schedule.List(s.dirs)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range waiting {
			if w.Name == "expiry-"+key {
				return w.Pid
			}
		}
		return 0
	}
	kill := func() {
		t.Helper()
		pid := waiter()
		if pid == 0 {
			t.Fatal("nobody waits for the end of the twin")
		}
		if err := syscall.Kill(-pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		s.eventually(func() error {
			if said := s.do("twin", "ls"); !strings.Contains(said, "(not scheduled)") {
				return errors.New("told as if somebody waited:\n" + said)
			}
			return nil
		})
	}
	s.do("twin", "create", s.dir, "f", "--expires", "10m")
	kill()
	s.run("--twin", "f", "status").want(0, "twin f expires at .* but the process that waited for that has ended")
	s.do("up")
	if waiter() == 0 {
		t.Error("nobody sees to the end of the twin")
	}
	kill()
	s.after(11*time.Minute).run("--twin", "f", "stop").
		want(6, "twin "+key+" expired at .* destroying it now", "Twin f of "+s.name+" is gone")
	if _, err := os.Stat(s.dirs.Site(key)); err == nil {
		t.Error("the twin is there")
	}
	s.do("down")
	s.wantNoTrace()
}

// soleSite is a site of one node that does nothing.
const soleSite = `
[network.lan]
subnet = "10.99.%d.0/24"
[image.debian]
suite = "bookworm"
[defaults]
memory = "128MiB"
[node.sole]
id = 1
net = { lan = "auto" }
`

// killWatchers kills the processes that watch a trial of the site.
func (s *site) killWatchers() {
	s.Helper()
	s.eventually(func() error {
		all := s.watchers()
		if len(all) == 0 {
			return errors.New("nobody watches yet")
		}
		for _, pid := range all {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return nil
	})
	s.wantUnwatched()
}
