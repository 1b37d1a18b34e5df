package guard

import (
	"strings"
	"testing"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// TestThaw: the guard does nothing if all nodes run, and otherwise refuses invalid names of nodes.
func TestThaw(t *testing.T) {
	dirs := host.Dirs{State: t.TempDir(), Run: t.TempDir()}
	if err := Thaw(t.Context(), dirs, strings.NewReader(allRunning), []string{"nothing"}); err != nil {
		t.Errorf("although all goes on: %v", err)
	}
	for _, node := range []string{"nothing", "lxc/karoo/web", "lxc/karoo/one/web", "none/karoo/1/web"} {
		if err := Thaw(t.Context(), dirs, strings.NewReader(""),
			[]string{node}); problem.ExitCode(err) != int(problem.Usage) {
			t.Errorf("%s: %v", node, err)
		}
	}
}
