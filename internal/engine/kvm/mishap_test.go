package kvm

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/host/process"
	"orrery/internal/observe"
	"orrery/internal/problem"
)

func (g ground) state(t *testing.T, ref engine.Ref) observe.State {
	t.Helper()
	return g.sees(t, ref).State
}

// sees returns a node from List, or one with the state "gone" if it does not exist.
func (g ground) sees(t *testing.T, ref engine.Ref) observe.Node {
	t.Helper()
	all, err := g.List(t.Context(), ref.Site)
	must(t, err)
	for _, n := range all {
		if n.ID == ref.ID {
			return n
		}
	}
	return observe.Node{State: "gone"}
}

// gone waits until no process of a machine runs.
func gone(t *testing.T, m machine) {
	t.Helper()
	for begun := time.Now(); len(m.Group().Processes()) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatalf("processes %v go on", m.Group().Processes())
		}
	}
}

// short runs commands that use up a guest's memory. The guest's kernel kills them, and the agent
// continues with the next command, in its own control group. An agent that was killed is restarted.
func (g ground) short(t *testing.T, ref engine.Ref) {
	t.Helper()
	in := func(script string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		out, err := host.Output(ctx, g.Runner(ref), host.Command{Args: []string{"sh", "-c", script}}, 1<<16)
		return strings.TrimSpace(string(out)), err
	}
	for range 2 {
		if _, err := in("exec tail /dev/zero"); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("what takes all memory ends with %v", err)
		}
		time.Sleep(time.Second) // in case systemd reacts
		if got, err := in("cat /proc/self/oom_score_adj; grep ^0:: /proc/self/cgroup; systemctl is-active init.scope"); got != "0\n0::/orrery-guest\nactive" || err != nil {
			t.Fatalf("the next command says %q, %v", got, err)
		}
	}
	_, _ = in("for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline | grep -q '^@orrery-guest agent' && kill -9 ${p#/proc/}; done")
	for begun := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		if got, _ := in("echo there"); got == "there" {
			return
		}
		if time.Since(begun) > time.Minute {
			t.Fatal("an agent that was killed is not there again")
		}
	}
}

// TestMishaps: a machine whose programs or starter are killed, whose guest does not come up, or
// whose guest uses all resources.
func TestMishaps(t *testing.T) {
	g := newGround(t)
	n := g.Node("victim", 1)
	ref := engine.RefOf(n)
	m := g.machine(ref)
	must(t, g.Create(t.Context(), n))

	// A guest without an init reports that, and Start does not wait for it.
	must(t, g.Inject(t.Context(), ref, host.File{Path: "/sbin/init", Content: []byte("no program"), Mode: 0o755}))
	begun := time.Now()
	err := g.Start(t.Context(), ref)
	if problem.ExitCode(err) != int(problem.Failed) || !strings.Contains(err.Error(), "console") ||
		!strings.Contains(err.Error(), "/sbin/init") {
		t.Errorf("a guest without an init: %v", err)
	}
	if time.Since(begun) > agentTimeout*engine.EmulationFactor {
		t.Error("it was waited for")
	}
	if g.state(t, ref) != observe.Stopped {
		t.Errorf("it is %s", g.state(t, ref))
	}
	must(t, g.Destroy(t.Context(), ref))
	must(t, g.Create(t.Context(), n))

	// If QEMU or virtiofsd is killed, the node is stopped, or runs without its root until it is
	// stopped. It can be started again.
	for _, comm := range []string{qemuComm, shareComm} {
		must(t, g.Start(t.Context(), ref))
		must(t, g.Runner(ref).Run(t.Context(),
			host.Command{Args: []string{"sh", "-c", "echo " + comm + " >/root/kept; echo " + comm + " >/dev/console"}}))
		awaitPrinted(t, m, comm)
		for _, pid := range m.Group().Processes() {
			if name, _ := os.ReadFile(process.Host.File(pid, "comm")); strings.HasPrefix(string(name), comm) {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
		ended := func(n observe.Node) bool { return n.State == observe.Stopped }
		if comm == shareComm {
			ended = func(n observe.Node) bool { return n.State == observe.Running && n.Rootless && n.RestartReason() != "" }
		}
		for begun := time.Now(); !ended(g.sees(t, ref)); time.Sleep(20 * time.Millisecond) {
			if time.Since(begun) > time.Minute {
				t.Fatalf("without %s the node is %+v", comm, g.sees(t, ref))
			}
		}
		if err := g.Runner(ref).Run(t.Context(), host.Command{Args: []string{"true"}}); err == nil {
			t.Errorf("without %s, a command runs", comm)
		}
		awaitPrinted(t, m, comm)
	}
	begun = time.Now()
	must(t, g.Stop(t.Context(), ref))
	gone(t, m)
	if took := time.Since(begun); took > 3*rootlessTimeout {
		t.Errorf("a machine without its root is ended after %s", took)
	}
	must(t, g.Start(t.Context(), ref))
	if err := g.Runner(ref).Run(t.Context(),
		host.Command{Args: []string{"grep", "-q", shareComm, "/root/kept"}}); err != nil {
		t.Errorf("what was written before is lost: %v", err)
	}
	g.bounded(t, n)
	g.short(t, ref)

	// Without the process that records its console, the guest continues and can still print.
	must(t, unix.Kill(findRecorder(m.Group()), unix.SIGKILL))
	if got := g.says(t, ref, "sh", "-c", "head -c 100000 /dev/zero >/dev/console && echo printed"); got != "printed" {
		t.Errorf("nobody records, and a command says %q", got)
	}

	// The next run ends a machine whose starter was killed, and also one whose stopper was killed.
	must(t, os.WriteFile(m.StartingFile(), nil, 0o600))
	must(t, g.Sweep(t.Context(), testSite))
	gone(t, m)
	if _, err := os.Stat(m.StartingFile()); err == nil || g.state(t, ref) != observe.Stopped {
		t.Errorf("after a start that was cut short it is %s, and the mark is there: %v", g.state(t, ref), err == nil)
	}
	must(t, g.Start(t.Context(), ref))
	must(t, g.Freeze(t.Context(), ref))
	if g.state(t, ref) != observe.Frozen {
		t.Errorf("it is %s, not frozen", g.state(t, ref))
	}
	must(t, os.WriteFile(m.StoppingFile(), nil, 0o600))
	must(t, g.Sweep(t.Context(), testSite))
	gone(t, m)
	if text, err := os.ReadFile(m.console()); err != nil || !strings.Contains(string(text), "Power down") {
		t.Errorf("of its console is kept %q, %v", text, err)
	}
	for _, path := range []string{m.StoppingFile(), m.FreezingFile(), m.Run, "/sys/class/net/" + n.NICs[0].HostIfName} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is left", path)
		}
	}

	// If the user interrupts a start, the command ends and nothing is left.
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := g.Start(ctx, ref); err == nil {
		t.Error("a start that was cancelled has succeeded")
	}
	gone(t, m)
}
