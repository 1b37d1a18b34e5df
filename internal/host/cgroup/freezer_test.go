package cgroup

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"orrery/internal/host"
	"orrery/internal/host/process"
	"orrery/test/need"
)

// TestFrost checks that a mark exists while Orrery has frozen a group. A group that is not frozen
// can be thawed, and has no mark.
func TestFrost(t *testing.T) {
	at := mountPoint(t.TempDir())
	f := Freezer{Group: Group{at, "orrery/karoo/101"}, Mark: filepath.Join(t.TempDir(), "freezing")}
	in := f.Group.name
	stands := func(frozen string, marked bool) {
		t.Helper()
		if got := read(t, at, in+"/cgroup.freeze"); got != frozen {
			t.Errorf("the group's state is %q, not %q", got, frozen)
		}
		if _, err := os.Lstat(f.Mark); (err == nil) != marked {
			t.Errorf("it has a mark: %v", err)
		}
	}
	put(t, at, map[string]string{"cgroup.controllers": "cpu\n", in + "/cgroup.freeze": "0",
		in + "/cgroup.events": "populated 1\nfrozen 1\n"})
	must(t, f.Freeze(t.Context()))
	stands("1", true)
	must(t, f.Freeze(t.Context()))
	must(t, f.Thaw())
	stands("0", false)
	must(t, f.Thaw())

	put(t, at, map[string]string{in + "/cgroup.events": "populated 1\nfrozen 0\n"})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if f.Freeze(ctx) == nil {
		t.Error("a group that goes on is frozen")
	}
	stands("0", false)
}

// TestFrostBesideThreads checks kernel threads, which never freeze. With version 2, they are
// outside the group while it is frozen, and return even if another process thaws it. A thread whose
// PID was reused stays where it is.
func TestFrostBesideThreads(t *testing.T) {
	at, table := mountPoint(t.TempDir()), process.Table(t.TempDir())
	f := Freezer{Group{at, "orrery/karoo/101"}, filepath.Join(t.TempDir(), "freezing"), table}
	in := f.Group.name
	tells := func(pid int, flags, since string) {
		must(t, os.MkdirAll(table.File(pid, ""), 0o755))
		text := "7 (a) name) S 2 0 0 0 -1 " + flags + " 0 0 0 0 0 0 0 0 20 0 1 0 " + since + " 0 0\n"
		must(t, os.WriteFile(table.File(pid, "stat"), []byte(text), 0o644))
	}
	tells(70, "138412416", "500") // flags of QEMU, and of kvm-nx-lpage-recovery on Debian 12
	tells(71, "2129984", "501")
	put(t, at, map[string]string{
		"cgroup.controllers": "cpu\n", "cgroup.procs": "", in + "/cgroup.procs": "70\n71\n72\n", in + "/cgroup.freeze": "0",
		in + "/cgroup.events": "populated 1\nfrozen 1\n",
	})
	must(t, f.Freeze(t.Context()))
	if got := read(t, at, "cgroup.procs"); got != "71" {
		t.Errorf("outside is %q", got)
	}
	must(t, Freezer{f.Group, f.Mark, table}.Thaw()) // as another process would
	if got := read(t, at, in+"/cgroup.procs"); got != "71" {
		t.Errorf("back is %q", got)
	}

	put(t, at, map[string]string{in + "/cgroup.procs": "70\n71\n"})
	must(t, f.Freeze(t.Context()))
	tells(71, "2129984", "900")
	put(t, at, map[string]string{in + "/cgroup.procs": "70\n"})
	must(t, f.Thaw())
	if got := read(t, at, in+"/cgroup.procs"); got != "70" {
		t.Errorf("back is %q, which is another's", got)
	}

	for _, text := range []string{"", "[{", "{}"} { // truncated marks
		must(t, os.WriteFile(f.Mark, []byte(text), 0o600))
		must(t, f.Thaw())
	}
}

// TestFrostOfForks checks that processes that fork all the time also freeze, each time, and soon.
func TestFrostOfForks(t *testing.T) {
	need.Integration(t)
	g := OfNode("it-cgroup", 3)
	var all []*exec.Cmd
	t.Cleanup(func() {
		_ = g.Kill(context.Background())
		for _, cmd := range all {
			_ = cmd.Wait()
		}
		Remove(g)
		RemoveEmpty("it-cgroup")
	})
	for range 3 {
		cmd := exec.Command("sh", "-c", "while :; do /bin/true; done")
		must(t, host.OnLockedThread(func() error { return g.Start(cmd) }))
		all = append(all, cmd)
	}
	var longest time.Duration
	for range 200 {
		began := time.Now()
		must(t, g.SetFrozen(true))
		must(t, g.WaitFrozen(t.Context(), true))
		longest = max(longest, time.Since(began))
		must(t, g.SetFrozen(false))
		must(t, g.WaitFrozen(t.Context(), false))
	}
	t.Logf("the longest took %v", longest)
	if longest > 2*time.Second {
		t.Errorf("once it took %v", longest)
	}
}
