package plan_test

import (
	"strings"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
)

// TestPinned: a node that is pinned to processors that its host lacks is refused before anything is
// done.
func TestPinned(t *testing.T) {
	for pin, want := range map[string]string{
		"0-1": "", "4": "", "": "",
		"0-99": "node db is pinned to processors 0-99, but host sv1 has only 0-1,4: it lacks 2-3,5-99",
		"3":    "it lacks 3",
	} {
		s := observatory()
		s.Nodes[0].Limits.Pin = pin
		_, err := plan.Up(s, []observe.Host{{Name: "sv1", Cpus: 3, Online: "0-1,4", Memory: 1 << 40}}, plan.Goal{})
		if want == "" && err != nil || want != "" &&
			(err == nil || !strings.Contains(err.Error(), want) || problem.ExitCode(err) != int(problem.Mistake)) {
			t.Errorf("pin %q: %v", pin, err)
		}
	}
}
