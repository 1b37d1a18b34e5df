package suspect

import (
	"context"
	"os/exec"
	"slices"
	"testing"
	"time"

	"orrery/internal/lab/facts"
	"orrery/internal/lab/probe"
	"orrery/internal/lab/test"
	"orrery/test/need"
)

// TestLive watches a trial on this machine while a program loads a processor, from before the trial
// until after it.
func TestLive(t *testing.T) {
	need.Integration(t)
	f, err := facts.Collect(t.Context(), facts.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range Host(f) {
		t.Logf("%v\t%s\t%s\t%s", found.OK, found.Name, found.Value, found.Fix)
	}
	base, err := probe.Baseline(t.Context(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f %% busy before", 100*base.Share())
	// Another test may use the host now but not later, so do not subtract its load.
	base = probe.CPU{}
	trial := func() []test.Label {
		var seconds []probe.Second
		p, err := probe.Start(t.Context(), probe.Options{Deliver: func(s probe.Second) { seconds = append(seconds, s) }})
		if err != nil {
			t.Fatal(err)
		}
		spin(t, 1500*time.Millisecond).Wait() // killed
		p.Stop()
		return During(seconds, Context{Kind: "cpu", Baseline: base})
	}
	// The test cannot require an idle machine, so it only logs the labels.
	t.Logf("alone: %+v", trial())
	other := spin(t, time.Minute)
	defer func() { _ = other.Process.Kill(); other.Wait() }()
	labels := trial()
	t.Logf("beside another: %+v", labels)
	if !slices.ContainsFunc(labels, func(l test.Label) bool { return l.Name == Load && l.Cure != "" }) {
		t.Error("the load is not seen")
	}
}

// spin keeps a processor busy for a time.
func spin(t *testing.T, d time.Duration) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	c := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
	c.WaitDelay = time.Second
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cancel)
	return c
}
