package boot

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestHalves checks that boot waits for devices that have a driver and no connection. It must not
// wait for consoles, or for devices without a driver.
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
	if waiting, err := unconnected(bus + "/none"); err != nil || waiting != nil {
		t.Errorf("without Xen: %v, %v", waiting, err)
	}
	device("9pfs-0", "Connected", true)
	device("console-1", "Initialising", true)
	device("vkbd-0", "Initialising", true)
	device("vbd-51712", "Initialising", false)
	if waiting, err := unconnected(bus); err != nil || waiting != nil {
		t.Errorf("%v, %v", waiting, err)
	}
	device("9pfs-1", "Initialised", true)
	device("vif-0", "Initialising", true)
	if waiting, err := unconnected(bus); err != nil ||
		!slices.Equal(waiting, []string{"9pfs-1 (Initialised)", "vif-0 (Initialising)"}) {
		t.Errorf("%v, %v", waiting, err)
	}
}

// TestShares checks that each share has its own options, and that an unknown one is an error.
func TestShares(t *testing.T) {
	for way, want := range map[string]rootShare{
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

// TestPlace checks that a missing mount point is created. A link out of the root, or a file, is an
// error.
func TestPlace(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	for path, to := range map[string]string{"out": outside, "in": "srv", "up": "../" + filepath.Base(outside)} {
		if err := os.Symlink(to, filepath.Join(root, path)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{"/srv/data": true, "/srv/data/more": true, "/srv": true, "/out/data": false,
		"/up/data": false, "/file": false, "/file/data": false, "/../x/y": false} {
		at, err := OpenMountPoint(root, path)
		if (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
		if err != nil {
			continue
		}
		if info, err := os.Stat(filepath.Join(root, path)); err != nil || !info.IsDir() || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
		at.Close()
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("outside there is %v, %v", left, err)
	}
}
