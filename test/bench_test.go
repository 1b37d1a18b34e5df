package test

import (
	"os"
	"os/exec"
	"testing"

	"orrery/test/need"
)

// TestBenches runs the benchmarks in their smallest size, so that a broken one is noticed before
// its figures are needed.
func TestBenches(t *testing.T) {
	need.Integration(t)
	t.Parallel()
	try := exec.Command("../bench/try")
	try.Env = append(os.Environ(), "ORRERY="+program)
	if out, err := try.CombinedOutput(); err != nil {
		t.Errorf("bench/try: %v\n%s", err, out)
	} else {
		t.Logf("%s", out)
	}
}
