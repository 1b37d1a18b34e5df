package control_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/internal/control"
	"orrery/internal/control/lab"
	"orrery/internal/control/sites"
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/place"
	"orrery/internal/problem"
)

// A lookerOn is told about the progress of an experiment.
type lookerOn struct{ *told }

func (lookerOn) Round(int, int)                        {}
func (lookerOn) Trial(string, string, time.Duration)   {}
func (lookerOn) Failed(string, string, error)          {}
func (lookerOn) Renewing(int)                          {}
func (lookerOn) Waiting(string, time.Duration)         {}
func (lookerOn) NotResumed(string, string)             {}
func (lookerOn) Resumed(string, int)                   {}
func (lookerOn) ObserverCost(float64)                  {}
func (w lookerOn) Deferred() (control.Watcher, func()) { return w.told, func() {} }

// TestLabStand: an experiment whose settings do not come up, or on whose nodes nothing can be
// measured, leaves no nodes, no networks, and no empty bundle.
func TestLabStand(t *testing.T) {
	d := newDesk(t)
	left := func(step string) {
		t.Helper()
		rows, err := sites.All(t.Context(), d.Session)
		d.must(err)
		for _, r := range rows {
			if r.Nodes > 0 {
				t.Errorf("%s: %s has %d nodes", step, r.Key(), r.Nodes)
			}
		}
		bundles, _ := filepath.Glob(filepath.Join(lab.Bundles(d.Session), "[^.]*"))
		work, _ := filepath.Glob(filepath.Join(lab.Bundles(d.Session), ".work", "*"))
		if len(bundles)+len(work) > 0 {
			t.Errorf("%s: left are %v, %v", step, bundles, work)
		}
	}
	run := func(ctx context.Context) error {
		t.Helper()
		made, err := lab.Run(ctx, d.Session, lookerOn{d.watch}, lab.Options{Experiment: experiment.Default(), Orrery: "1",
			Programs: map[string][]byte{place.Micro: []byte("never run")}})
		if made != nil {
			t.Errorf("there is a report: %+v", made)
		}
		return err
	}
	d.fault.Fail("Start", "", 1, nil)
	d.wantExit(run(t.Context()), problem.Left, "node ")
	left("a node that does not start")
	if err := run(t.Context()); err == nil { // there are no trees, and no programs to measure with
		t.Error("something was measured in nodes that are not there")
	}
	left("nodes without trees")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ended); !errors.Is(err, context.Canceled) && problem.ExitCode(err) != int(problem.Interrupted) {
		t.Errorf("ended by its caller: %v", err)
	}
	left("one that was ended")
	if _, err := os.Stat(filepath.Join(lab.Bundles(d.Session), ".lock")); err != nil &&
		!strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
}
