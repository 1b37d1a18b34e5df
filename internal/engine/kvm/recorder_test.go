package kvm

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"orrery/internal/engine/confine"
	"orrery/internal/engine/kvm/record"
	"orrery/internal/host/cgroup"
	"orrery/test/need"
)

// TestRecorder: one confined process records the output of all writers, and ends after the last of
// them.
func TestRecorder(t *testing.T) {
	need.Integration(t)
	need.Guest(t)
	dir, in := t.TempDir(), cgroup.OfNode("it-recorder", 1)
	cell := confine.Sandbox{At: filepath.Join(dir, "cell"), User: 1_900_131_071}
	must(t, os.Mkdir(cell.At, 0o700))
	t.Cleanup(func() {
		_ = in.Kill(context.Background())
		cgroup.Remove(in)
		cgroup.RemoveEmpty("it-recorder")
	})
	run := filepath.Join(dir, "run")
	first, err := openRecorder(t.Context(), run, cell, in)
	must(t, err)
	for findRecorder(in) == 0 { // prlimit executes the recorder
		if len(in.Processes()) == 0 {
			t.Fatal("it has ended")
		}
		time.Sleep(time.Millisecond)
	}
	of := findRecorder(in)
	_, err = first.WriteString("of the first\n")
	must(t, err)
	second, err := openRecorder(t.Context(), run, cell, in)
	must(t, err)
	if findRecorder(in) != of || len(otherRecorders(in)) > 0 {
		t.Errorf("there are %v", in.Processes())
	}
	must(t, first.Close())
	_, err = second.WriteString("of the second\n")
	must(t, err)
	must(t, second.Close())
	awaitRecorder(t.Context(), in)
	if left := in.Processes(); len(left) > 0 {
		t.Errorf("%v go on", left)
	}
	if text, err := record.Read(run); string(text) != "of the first\nof the second\n" || err != nil {
		t.Errorf("recorded is %q: %v", text, err)
	}
	must(t, killRecorders(t.Context(), in))
}

// TestSeen: a program that is installed among libraries is visible with them, and is not mounted
// again.
func TestSeen(t *testing.T) {
	for program, want := range map[string]bool{
		"/usr/lib/orrery/orrery-guest": false, "/usr/local/lib/orrery/orrery-guest": true,
		"/opt/orrery/bin/orrery-guest": true,
	} {
		if got := slices.Contains(visiblePaths(program), program); got != want {
			t.Errorf("%s is shown by itself: %v", program, got)
		}
	}
}
