package cli

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/problem"
)

// TestBound: a verb that only reads a site directory ends, whatever it does.
func TestBound(t *testing.T) {
	runtime.GC() // free what other tests have left, so that it does not change the measurement
	own := errors.New("its own")
	release := make(chan struct{})
	defer close(release)
	for name, c := range map[string]struct {
		bound bound
		run   func() error
		want  string
	}{
		"honest": {siteBound, func() error { return own }, "its own"},
		"no end": {bound{50 * time.Millisecond, 1 << 40}, func() error { <-release; return nil },
			"site directory: reading it takes more than 50ms"},
		"all memory": {bound{time.Minute, memoryInUse() + 64<<20},
			func() error { keep(make([][]byte, 1<<10), release); return nil }, "MiB of memory"},
	} {
		err := c.bound.wrap(func(*cobra.Command, []string) error { return c.run() })(nil, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err != own && problem.ExitCode(err) != int(problem.Mistake) {
			t.Errorf("%s: exit status %d", name, problem.ExitCode(err))
		}
	}
}

// keep fills memory, a MiB at a time, until it is released.
func keep(all [][]byte, release chan struct{}) {
	for i := range all[:256] {
		all[i] = make([]byte, 1<<20)
	}
	<-release
	for i := range all {
		all[i] = nil
	}
}
