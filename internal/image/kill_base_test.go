package image

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestKilledBootstrap kills a builder while mmdebstrap runs. No process or mount may remain,
// because the next build removes the tree.
func TestKilledBootstrap(t *testing.T) {
	s := realState(t)
	l := spec.Base(site.Mirror{}, site.Image{Name: "killed", Suite: "bookworm"})
	l.Digest = spec.Digest(t.Name())
	if os.Getenv(killedState) != "" {
		t.Fatal(s.BuildBase(t.Context(), l, site.Mirror{}, func(string) {}))
	}
	t.Cleanup(func() { s.drop(l.Digest) })
	builder := exec.Command(os.Args[0], "-test.run=^TestKilledBootstrap$")
	builder.Env = append(os.Environ(), killedState+"=1")
	if err := builder.Start(); err != nil {
		t.Fatal(err)
	}
	// By now packages are being configured in the tree, where proc is mounted.
	perl := s.stagings + "/" + l.Digest + "/tree/usr/bin/perl"
	for begun := time.Now(); time.Since(begun) < 2*time.Minute; time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat(perl); err == nil {
			break
		}
	}
	time.Sleep(2 * time.Second)
	if pids := processesOf(s); len(pids) < 3 {
		t.Errorf("only %v run while it builds", pids)
	}
	builder.Process.Kill()
	builder.Wait()
	var left []string
	for range 1000 {
		if left = processesOf(s); len(left) == 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if len(left) > 0 {
		t.Errorf("long after its end there are still %v", left)
	}
	if mounts, err := mountsIn(s.state); err != nil || len(mounts) > 0 {
		t.Errorf("mounts are left: %v, %v", mounts, err)
	}
	if err := s.drop(l.Digest); err != nil {
		t.Error(err)
	}
	nothingLeft(t, s)
}
