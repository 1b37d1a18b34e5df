package kvm

import (
	"context"
	"strings"
	"testing"
	"time"

	"orrery/internal/engine/vm"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestStartWithoutRoom: nobody waits for the guest of a machine that stands still because its host has no room, whatever kind
// of machine it is. The problem names the cause, and no other cure than room.
func TestStartWithoutRoom(t *testing.T) {
	m := machine{Machine: vm.Machine{Run: t.TempDir()}}
	serveMonitor(t, m.Run, func(string, map[string]any) (says, events string, ends bool) {
		return `"return":{"status":"io-error","running":false}`, "", false
	})
	boots := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	for name, n := range map[string]*spec.Node{
		"a disk of its own": {VM: site.VM{Disk: site.QCow2}},
		"a disk image":      {Disk: site.Disk{Guest: site.NoGuest}},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		err := m.unlessStarved(ctx, n, boots)
		cancel()
		if text := m.StartProblem(err, "the last lines").Error(); !strings.Contains(text, "has no room") || !strings.Contains(text, "make room there") ||
			strings.Contains(text, "doctor") || !strings.Contains(text, "the last lines") {
			t.Errorf("%s: %s", name, text)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := m.unlessStarved(ctx, &spec.Node{}, boots); err == nil || strings.Contains(err.Error(), "room") {
		t.Errorf("a machine that writes to no disk: %v", err)
	}
}
