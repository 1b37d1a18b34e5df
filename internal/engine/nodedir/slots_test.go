package nodedir

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSlotsOfTwoStateDirectories: nodes of the same site and number in two state directories do not
// share user ids.
//
// Promise (Other users of the host): Nodes of different state directories share no user ids; a site
// belongs to one state directory. With host.TestClaim, test.TestTwoStateDirectories.
func TestSlotsOfTwoStateDirectories(t *testing.T) {
	usual, other := nodesIn(t.TempDir()), nodesIn(t.TempDir())
	slots := usual.Slots
	other.Slots = slots
	take := func(e *Nodes, id int) int {
		t.Helper()
		slot, err := slotsOf(e).allocate("karoo", id)
		if err != nil {
			t.Fatal(err)
		}
		return slot
	}
	if a, b, c := take(usual, 1), take(other, 1), take(usual, 2); a != 1 || b != 2 || c != 3 || take(other, 1) != b {
		t.Errorf("slots are %d, %d and %d", a, b, c)
	}
	// A node cannot free the slot of another.
	r := &Record{Slot: 2}
	r.Site, r.ID = "karoo", 1
	if err := slotsOf(usual).free(r); err != nil || !exists(filepath.Join(slots, "2")) {
		t.Errorf("another's slot was freed: %v", err)
	}
	if err := os.MkdirAll(usual.Dirs.Nodes("karoo")+"/1", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := slotsOf(usual).sweep("karoo"); err != nil || !exists(filepath.Join(slots, "1")) ||
		!exists(filepath.Join(slots, "2")) || exists(filepath.Join(slots, "3")) {
		t.Errorf("not swept as it should be: %v", err)
	}
	// The slots of a state directory that was removed are free.
	if err := os.RemoveAll(other.Dirs.State); err != nil {
		t.Fatal(err)
	}
	if err := slotsOf(usual).sweep("karoo"); err != nil || exists(filepath.Join(slots, "2")) {
		t.Errorf("the slot of a state directory that is gone is kept: %v", err)
	}
	if err := slotsOf(other).free(r); err != nil {
		t.Error(err)
	}
}
