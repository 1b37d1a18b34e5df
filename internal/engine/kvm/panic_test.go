package kvm

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/kvm/record"
	"orrery/internal/host"
	"orrery/internal/observe"
)

// TestPanic: a machine whose kernel panics is reported as stopped, with its last output, however
// much that was. It is stopped without a wait, keeps its console log, and boots at its next start.
func TestPanic(t *testing.T) {
	g := newGround(t)
	n := g.Node("panics", 1)
	ref := engine.RefOf(n)
	m := g.machine(ref)
	must(t, g.Create(t.Context(), n))
	must(t, g.Start(t.Context(), ref))
	filler := fmt.Sprintf("head -c %d /dev/zero | tr '\\0' . | fold >/dev/console; ", record.MaxBytes+record.MaxBytes/2)
	must(t, g.Runner(ref).Run(t.Context(), host.Command{Args: []string{
		"sh", "-c", filler + "setsid sh -c 'sleep 2; echo c >/proc/sysrq-trigger' </dev/null >/dev/null 2>&1 &",
	}}))
	var seen observe.Node
	for begun := time.Now(); seen.Panic == ""; time.Sleep(200 * time.Millisecond) {
		all, err := g.List(t.Context(), testSite)
		must(t, err)
		if seen = all[0]; time.Since(begun) > time.Minute {
			text, _ := serial{m}.Printed()
			t.Fatalf("it is %s, and QEMU says %q\n%s", seen.State, m.runState(t.Context()), text)
		}
	}
	if seen.State != observe.Frozen || seen.Starved ||
		!strings.HasPrefix(seen.Panic, "Kernel panic - not syncing: sysrq") {
		t.Errorf("it is %s: %q", seen.State, seen.Panic)
	}
	must(t, g.Freeze(t.Context(), ref))
	must(t, g.Thaw(t.Context(), ref))
	if state := m.runState(t.Context()); state != "guest-panicked" {
		t.Errorf("after a snapshot it is %s", state)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must(t, g.Stop(ctx, ref))
	must(t, ctx.Err())
	if text, err := os.ReadFile(m.console()); err != nil || !strings.Contains(string(text), "Kernel panic") ||
		len(text) < record.MaxBytes/2 {
		t.Errorf("%d bytes of its console are kept: %v", len(text), err)
	}
	must(t, g.Start(t.Context(), ref))
	if state := g.state(t, ref); state != observe.Running {
		t.Errorf("started anew, it is %s", state)
	}
}
