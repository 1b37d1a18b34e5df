package cgroup

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestFrost: a mark is there while a group stands still by us. A group that does not is let go on, and has no mark.
func TestFrost(t *testing.T) {
	at := place(t.TempDir())
	f := Frost{Group{at, "orrery/karoo/101"}, filepath.Join(t.TempDir(), "freezing")}
	in := f.Group.name
	stands := func(frozen string, marked bool) {
		t.Helper()
		if got := read(t, at, in+"/cgroup.freeze"); got != frozen {
			t.Errorf("the group's state is %q, not %q", got, frozen)
		}
		if _, err := os.Lstat(f.Mark); (err == nil) != marked {
			t.Errorf("it has a mark: %v", err)
		}
	}
	put(t, at, map[string]string{"cgroup.controllers": "cpu\n", in + "/cgroup.freeze": "0", in + "/cgroup.events": "populated 1\nfrozen 1\n"})
	must(t, f.Freeze(t.Context()))
	stands("1", true)
	must(t, f.Freeze(t.Context()))
	must(t, f.Thaw())
	stands("0", false)
	must(t, f.Thaw())

	put(t, at, map[string]string{in + "/cgroup.events": "populated 1\nfrozen 0\n"})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if f.Freeze(ctx) == nil {
		t.Error("a group that goes on is frozen")
	}
	stands("0", false)
}
