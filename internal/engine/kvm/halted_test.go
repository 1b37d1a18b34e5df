package kvm

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"orrery/internal/engine/vm"
)

// TestStartHalted: Start does not wait for the guest of a machine that has stopped because its host
// has no room or its kernel has panicked. The problem names that cause, and only its cure.
//
// Promise (Virtual machines): Starting a machine that is paused for lack of disk space does not
// wait, and `orrery start` resumes it. With engine/kvm.TestDisks, plan.TestStarved.
func TestStartHalted(t *testing.T) {
	var state atomic.Value
	m := machine{Machine: vm.Machine{Run: t.TempDir()}}
	serveMonitor(t, m.Run, func(string, map[string]any) (says, events string, ends bool) {
		return fmt.Sprintf(`"return":{"status":%q,"running":false}`, state.Load()), "", false
	})
	boots := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	for _, c := range []struct{ state, cause, cure string }{
		{"io-error", "has no space left", "free space on the host"},
		{"guest-panicked", "its kernel has panicked", "--log"},
	} {
		state.Store(c.state)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		err := unlessHalted(ctx, m, boots)
		cancel()
		if text := m.StartProblem(err, "the last lines").Error(); !strings.Contains(text, c.cause) ||
			!strings.Contains(text, c.cure) ||
			strings.Contains(text, "doctor") || !strings.Contains(text, "the last lines") {
			t.Errorf("%s: %s", c.state, text)
		}
	}
}
