package local_test

import (
	"strings"
	"testing"
	"time"

	"orrery/internal/observe"
	"orrery/internal/plan"
)

// TestEnding: a node that does not shut down in time is killed, and the user is told. A node that
// the user asked to kill is not waited for, and nothing is reported.
//
// Promise (Virtual machines): A stop whose time has run out ends the node and cleans up; the user
// is told that it was killed. With engine/kvm.TestEngine, engine/lxc.TestEngine.
func TestEnding(t *testing.T) {
	w := newWorld(t)
	w.reach(w.up())
	w.below.Delay("Stop", "db", time.Minute)
	for _, c := range []struct {
		ending plan.StopMode
		told   int
	}{{plan.StopMode{Timeout: 100 * time.Millisecond}, 1}, {plan.StopMode{Hard: true}, 0}} {
		var told []string
		begun := time.Now()
		p := plan.Stop(w.site, w.observed(), plan.Goal{Ending: c.ending})
		for _, s := range p.Steps {
			w.must(w.Do(t.Context(), s, func(text string) { told = append(told, s.Subject+" "+text) }))
		}
		if took := time.Since(begun); took > 20*time.Second {
			t.Errorf("%+v: it took %v", c.ending, took)
		}
		if len(told) != c.told || c.told > 0 &&
			!strings.Contains(told[0], "db did not shut down within 100ms and was killed") {
			t.Errorf("%+v: %q", c.ending, told)
		}
		for _, n := range w.observed()[0].Nodes {
			if n.State != observe.Stopped {
				t.Errorf("%+v: %s is %s", c.ending, n.Name, n.State)
			}
		}
		w.reach(plan.Start(w.site, w.observed(), plan.Goal{}))
	}
}
