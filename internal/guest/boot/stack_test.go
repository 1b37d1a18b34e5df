package boot

import (
	"os"
	"path/filepath"
	"testing"
)

// TestUncover checks that what the host has written anew becomes visible, whatever the machine has
// written there or in a parent. All other files of the machine stay.
func TestUncover(t *testing.T) {
	upper := t.TempDir()
	write := func(name string) {
		t.Helper()
		at := filepath.Join(upper, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"etc/hostname", "etc/kept", "removed", "dir/in/it"} {
		write(name)
	}
	if err := os.Symlink(upper+"/etc", filepath.Join(upper, "link")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/etc/hostname", "/removed/file", "/link/kept", "/dir", "/nothing/there",
		"/../etc/none"} {
		if err := uncover(upper, path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	for name, stays := range map[string]bool{"etc": true, "etc/kept": true, "etc/hostname": false, "removed": false,
		"dir": false, "link": false} {
		if _, err := os.Lstat(filepath.Join(upper, name)); (err == nil) != stays {
			t.Errorf("%s stays: %v", name, err == nil)
		}
	}
}

// TestRefresh checks that the host's files replace those on the disk once after each start by the
// host. After a reboot of the machine itself, its own files stay.
func TestRefresh(t *testing.T) {
	disk := t.TempDir()
	hosts := filepath.Join(disk, "upper/etc/hosts")
	write := func() {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(hosts), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(hosts, []byte("the machine's own"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, boot := range []struct {
		start string
		stays bool
	}{{"one", false}, {"one", true}, {"one", true}, {"two", false}, {"two", true}, {"", false}, {"", false}} {
		write()
		s := Stack{Start: boot.start, Fresh: []string{"/etc/hosts"}}
		if err := s.refresh(disk); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(hosts); (err == nil) != boot.stays {
			t.Errorf("after start %q: what the machine wrote stays: %t", boot.start, err == nil)
		}
	}
}
