package test

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestInit: the site that init writes starts and is healthy without changes.
func TestInit(t *testing.T) {
	t.Parallel()
	s := newSite(t, "it-init", "", nil)
	s.dir = filepath.Join(s.dir, s.name) // init names the site after its directory
	if out, err := exec.Command(program, "init", s.dir).CombinedOutput(); err != nil {
		t.Fatalf("orrery init: %v\n%s", err, out)
	}
	s.run("check").want(0, "no mistakes")
	s.run("up").want(0, `hello1 .*healthy`, `hello2 .*healthy`)
	s.settled()
}
