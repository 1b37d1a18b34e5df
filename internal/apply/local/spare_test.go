package local_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/pack"
	"orrery/internal/problem"
	"orrery/test/need"
)

// TestRestartOnFullDisk: a node that could not start again is not stopped, by whatever step. A
// stopped node starts even if the disk has become full since. A node that is only stopped needs no
// space.
//
// Promise (Data and time): A node that could not start again on a full disk is not stopped to be
// restarted. With test.TestFullDisk.
func TestRestartOnFullDisk(t *testing.T) {
	need.Integration(t)
	small := t.TempDir()
	if err := unix.Mount("orrery-test", small, "tmpfs", 0, "size=8m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(small, unix.MNT_DETACH) })
	w := newWorld(t)
	w.begin(host.Dirs{State: small, Run: w.host.Dirs.Run})
	w.settled(w.reach(w.up()))
	ballast := filepath.Join(small, "ballast")
	fill := func() {
		t.Helper()
		if err := os.WriteFile(ballast, make([]byte, 8<<20), 0o600); !problem.DiskFull(err) {
			t.Fatalf("the disk has no end: %v", err)
		}
	}
	running := func() (all []string) {
		for _, n := range w.observed()[0].Nodes {
			if n.State == observe.Running {
				all = append(all, n.Name)
			}
		}
		return all
	}
	restart := func(ends plan.Kind) *plan.Plan {
		w.must(w.Runs.Sweep(w.Context()))
		p, err := plan.Restart(w.site, w.observed(), plan.Goal{Ending: plan.StopMode{Hard: ends == plan.KillNode}})
		w.must(err)
		pack.MarkRestarts(p)
		return p
	}
	for _, ends := range []plan.Kind{plan.StopNode, plan.KillNode} {
		p := restart(ends)
		fill()
		r := w.run(p)
		if all := running(); len(all) != 2 || len(r.Done) > 0 {
			t.Fatalf("%s: running are %v, done was %v", ends, all, r.Done)
		}
		for _, f := range r.Failed {
			if !problem.DiskFull(f.Err) ||
				!strings.Contains(f.Err.Error(), "was not stopped, because there is no room to start it again") {
				t.Errorf("%s: %v", f.Step, f.Err)
			}
		}
		w.must(os.Remove(ballast))
	}
	p := restart(plan.StopNode)
	for _, s := range p.Steps {
		if s.Kind == plan.StartNode {
			fill()
		}
		if err := w.Do(t.Context(), s, func(string) {}); err != nil {
			t.Errorf("%s: %v", s, err)
		}
		_ = os.Remove(ballast)
	}
	w.settled(p)
	fill()
	w.reach(plan.Stop(w.site, w.observed(), plan.Goal{}), nil)
	if all := running(); len(all) > 0 {
		t.Errorf("running are %v", all)
	}
}
