package xen

import (
	"context"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// mishaps are failures of domains, of xl, and of the programs that run it. After each, the node can
// be started as usual, or removed.
func mishaps(t *testing.T, w world) {
	for i, c := range []struct {
		name string
		test func(*testing.T, world, *spec.Node)
	}{
		{"CreateFails", createFails},
		{"CreateHalf", createHalf},
		{"CreateHangs", createHangs},
		{"PauseHangs", pauseHangs},
		{"UnpauseFails", unpauseFails},
		{"DestroyFails", destroyFails},
		{"GuestDies", guestDies},
		{"GuestPowersOff", guestPowersOff},
		{"BackendDies", backendDies},
		{"NobodyWatches", nobodyWatches},
		{"DeafGuest", deafGuest},
		{"ToolstackGone", toolstackGone},
		{"KilledStarter", killedStarter},
		{"KilledFreezer", killedFreezer},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := w.Node(strings.ToLower(c.name), 100+i)
			must(t, w.Create(t.Context(), n))
			t.Cleanup(func() { must(t, w.Destroy(context.Background(), engine.RefOf(n))) })
			c.test(t, w, n)
		})
	}
}

func (w world) runs(t *testing.T, n *spec.Node) {
	t.Helper()
	must(t, w.Start(t.Context(), engine.RefOf(n)))
	if got := w.state(t, n); got != string(observe.Running) {
		t.Fatalf("it is %s", got)
	}
}

func (w world) gone(t *testing.T, n *spec.Node) {
	t.Helper()
	must(t, w.Destroy(t.Context(), engine.RefOf(n)))
	w.wantNothing(t, n)
}

func (w world) wantFailed(t *testing.T, what string, err error, said string) {
	t.Helper()
	if problem.ExitCode(err) != int(problem.Failed) || !strings.Contains(words(err), said) {
		t.Errorf("%s: %v; want %q", what, err, said)
	}
}

func createFails(t *testing.T, w world, n *spec.Node) {
	w.dom0.order(t, "create", "fail")
	w.wantFailed(t, "start", w.Start(t.Context(), engine.RefOf(n)), "create was to fail")
	w.wantNothing(t, n)
	w.dom0.order(t, "create", "")
	w.runs(t, n)
}

// createHalf: if xl fails half way, nothing of the domain is left.
func createHalf(t *testing.T, w world, n *spec.Node) {
	w.dom0.order(t, "create", "half")
	w.wantFailed(t, "start", w.Start(t.Context(), engine.RefOf(n)), "half way")
	w.dom0.order(t, "create", "")
	w.wantNothing(t, n)
	w.runs(t, n)
}

// createHangs: a cancelled start leaves nothing.
func createHangs(t *testing.T, w world, n *spec.Node) {
	w.dom0.order(t, "create", "hang")
	if err := w.Start(within(t), engine.RefOf(n)); err == nil || !strings.Contains(words(err), "deadline") {
		t.Errorf("start: %v", err)
	}
	w.dom0.order(t, "create", "")
	w.wantNothing(t, n)
	w.runs(t, n)
}

// pauseHangs: a node that cannot be frozen continues.
func pauseHangs(t *testing.T, w world, n *spec.Node) {
	w.runs(t, n)
	w.dom0.order(t, "pause", "hang")
	w.wantFailed(t, "freeze", w.Freeze(within(t), engine.RefOf(n)), "could not be frozen")
	w.dom0.order(t, "pause", "")
	if got := w.state(t, n); got != string(observe.Running) {
		t.Errorf("it is %s", got)
	}
	w.runs(t, n)
}

// unpauseFails: if a guest cannot be unpaused, Thaw fails, and the next Thaw tries again.
func unpauseFails(t *testing.T, w world, n *spec.Node) {
	w.runs(t, n)
	must(t, w.Freeze(t.Context(), engine.RefOf(n)))
	w.dom0.order(t, "unpause", "fail")
	w.wantFailed(t, "thaw", w.Thaw(t.Context(), engine.RefOf(n)), "is still frozen")
	if got := w.state(t, n); got != string(observe.Frozen) {
		t.Errorf("a guest that Xen lets stand still is listed as %s", got)
	}
	w.dom0.order(t, "unpause", "")
	must(t, w.Thaw(t.Context(), engine.RefOf(n)))
	w.runs(t, n)
	must(t, w.Runner(engine.RefOf(n)).Run(t.Context(), commandOf("true")))
}

// destroyFails: a node whose domain cannot be ended stays recorded.
func destroyFails(t *testing.T, w world, n *spec.Node) {
	w.runs(t, n)
	w.dom0.order(t, "destroy", "fail")
	w.wantFailed(t, "destroy", w.Destroy(t.Context(), engine.RefOf(n)), "could not be killed")
	if w.state(t, n) == "" {
		t.Error("it is not listed, though its domain runs")
	}
	w.dom0.order(t, "destroy", "")
	w.gone(t, n)
}

// guestDies: a crash ends the domain, and the node is listed as stopped.
func guestDies(t *testing.T, w world, n *spec.Node) {
	w.runs(t, n)
	must(t, unix.Kill(w.domainOf(t, n).Guest, unix.SIGKILL))
	eventually(t, "stopped", func() bool { return w.state(t, n) == string(observe.Stopped) })
	w.runs(t, n)
}

func guestPowersOff(t *testing.T, w world, n *spec.Node) {
	w.runs(t, n)
	_ = w.Runner(engine.RefOf(n)).Run(t.Context(), commandOf("kill", "-s", "38", "1"))
	eventually(t, "stopped", func() bool { return w.state(t, n) == string(observe.Stopped) })
	must(t, w.Stop(t.Context(), engine.RefOf(n)))
	w.wantNothing(t, n)
	w.runs(t, n)
}

// backendDies: without QEMU a guest counts as dead. The next start ends it first.
func backendDies(t *testing.T, w world, n *spec.Node) {
	w.runs(t, n)
	before := w.domainOf(t, n)
	must(t, unix.Kill(before.Backend, unix.SIGKILL))
	eventually(t, "stopped", func() bool { return w.state(t, n) == string(observe.Stopped) })
	w.runs(t, n)
	if after := w.domainOf(t, n); after.ID == before.ID || unix.Kill(before.Guest, 0) == nil {
		t.Errorf("domain %d goes on; the new one is %d", before.ID, after.ID)
	}
	must(t, unix.Kill(w.domainOf(t, n).Backend, unix.SIGKILL))
	eventually(t, "stopped", func() bool { return w.state(t, n) == string(observe.Stopped) })
	must(t, w.Stop(t.Context(), engine.RefOf(n)))
	w.wantNothing(t, n)
}

// nobodyWatches: if the process that watches a domain was killed, QEMU still runs when the guest
// has shut down.
func nobodyWatches(t *testing.T, w world, n *spec.Node) {
	w.runs(t, n)
	m, backend := w.machine(engine.RefOf(n)), w.domainOf(t, n).Backend
	must(t, m.Group().KillMatching(t.Context(), func(pid int) bool { return pid != backend }))
	must(t, w.Runner(m.Ref).Run(t.Context(), commandOf("true")))
	must(t, w.Stop(t.Context(), m.Ref)) // without a deadline
	w.wantNothing(t, n)
	w.runs(t, n)
}

// deafGuest: a guest that responds to neither agent nor kernel is ended after the deadline.
func deafGuest(t *testing.T, w world, n *spec.Node) {
	w.runs(t, n)
	must(t, w.domainOf(t, n).group().SetFrozen(true))
	if err := w.Stop(within(t), engine.RefOf(n)); err != nil {
		t.Errorf("stop: %v", err)
	}
	w.wantNothing(t, n)
	w.runs(t, n)
}

// toolstackGone: without xl, a domain cannot be ended, and its node stays recorded.
func toolstackGone(t *testing.T, w world, n *spec.Node) {
	w.runs(t, n)
	path := os.Getenv("PATH")
	must(t, os.Setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"))
	err := w.Destroy(t.Context(), engine.RefOf(n))
	state := w.state(t, n)
	must(t, os.Setenv("PATH", path))
	if problem.ExitCode(err) == 0 || !strings.Contains(words(err), "xl, is not installed") ||
		state != string(observe.Running) {
		t.Errorf("destroy: %v; the node is %q", err, state)
	}
	w.gone(t, n)
}

// killedStarter: the next run that holds the site's lock ends the domain that a killed run was
// starting.
func killedStarter(t *testing.T, w world, n *spec.Node) {
	w.runs(t, n)
	m := w.machine(engine.RefOf(n))
	must(t, os.WriteFile(m.StartingFile(), nil, 0o600))
	must(t, w.Sweep(t.Context(), n.Site))
	w.wantNothing(t, n)
	w.runs(t, n)
}

// killedFreezer: if a run is killed between pausing the domain and freezing its QEMU, the next run
// lets the guest continue.
func killedFreezer(t *testing.T, w world, n *spec.Node) {
	w.runs(t, n)
	m := w.machine(engine.RefOf(n))
	must(t, os.WriteFile(m.FreezingFile(), nil, 0o600))
	must(t, w.domainOf(t, n).group().SetFrozen(true))
	must(t, w.Sweep(t.Context(), n.Site))
	if w.domainOf(t, n).group().Frozen() {
		t.Error("its domain stands still")
	}
	must(t, w.Runner(m.Ref).Run(t.Context(), commandOf("true")))
}

func (w world) domainOf(t *testing.T, n *spec.Node) guestDomain {
	t.Helper()
	one, err := w.dom0.domain(w.machine(engine.RefOf(n)).domain())
	must(t, err)
	return one
}

func commandOf(args ...string) host.Command { return host.Command{Args: args} }
