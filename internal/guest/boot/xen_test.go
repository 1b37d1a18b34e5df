package boot

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestHalves: what has a driver and is not connected is waited for; what has none, or is a console, is not.
func TestHalves(t *testing.T) {
	bus := t.TempDir()
	device := func(name, state string, driven bool) {
		dir := filepath.Join(bus, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "state"), []byte(state+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if driven {
			if err := os.Symlink("../drivers/x", filepath.Join(dir, "driver")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if waiting, err := halves(bus + "/none"); err != nil || waiting != nil {
		t.Errorf("without Xen: %v, %v", waiting, err)
	}
	device("9pfs-0", "Connected", true)
	device("console-1", "Initialising", true)
	device("vkbd-0", "Initialising", true)
	device("vbd-51712", "Initialising", false)
	if waiting, err := halves(bus); err != nil || waiting != nil {
		t.Errorf("%v, %v", waiting, err)
	}
	device("9pfs-1", "Initialised", true)
	device("vif-0", "Initialising", true)
	if waiting, err := halves(bus); err != nil || !slices.Equal(waiting, []string{"9pfs-1 (Initialised)", "vif-0 (Initialising)"}) {
		t.Errorf("%v, %v", waiting, err)
	}
}

// TestShares: each way has its own options, and what is not known is refused.
func TestShares(t *testing.T) {
	for way, want := range map[string]share{
		VirtioFS: {kind: "virtiofs"},
		NinePXen: {kind: "9p", data: "trans=xen,version=9p2000.L,msize=131072,", own: "cache=loose", others: "cache=mmap"},
	} {
		if got, err := shareOf(way); err != nil || got != want {
			t.Errorf("%s: %+v, %v", way, got, err)
		}
	}
	if _, err := shareOf("nfs"); err == nil {
		t.Error("a root by nfs is known")
	}
}
