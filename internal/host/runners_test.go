package host_test

import (
	"os"
	"testing"

	"orrery/internal/host"
	"orrery/internal/host/runnertest"
)

// TestRunner runs the test suite of all Runners with Local.
func TestRunner(t *testing.T) {
	f := runnertest.Fixture{Runner: host.Local{Name: "here"}, Place: "here", Dir: t.TempDir()}
	if os.Geteuid() == 0 {
		f.Owner = "12:34"
	}
	runnertest.Run(t, f)
}
