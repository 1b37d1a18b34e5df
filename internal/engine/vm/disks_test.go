package vm

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTakeDisks: received disks must be regular files without other links, or they are refused.
// Files that are no disks are removed.
func TestTakeDisks(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("owners need root")
	}
	outside := filepath.Join(t.TempDir(), "shadow")
	must(t, os.WriteFile(outside, []byte("secret"), 0o640))
	for what, c := range map[string]struct {
		make func(layer, hold string) error
		want string
		left []string
	}{
		"nothing": {make: func(_, hold string) error { return os.RemoveAll(hold) }},
		"disks": {func(_, hold string) error {
			for _, name := range []string{"root.qcow2", "more.raw", SeenFile, "more.raw.new", "device"} {
				if err := os.WriteFile(filepath.Join(hold, name), []byte(name), 0o666); err != nil {
					return err
				}
			}
			return os.Symlink(outside, filepath.Join(hold, "link"))
		}, "", []string{"more.raw", "root.qcow2", SeenFile}},
		"a link for the directory": {func(_, hold string) error {
			return cmp.Or(os.RemoveAll(hold), os.Symlink(filepath.Dir(outside), hold))
		}, DiskDir, nil},
		"a link for a disk": {func(_, hold string) error {
			return os.Symlink(outside, filepath.Join(hold, "root.qcow2"))
		}, "root.qcow2", nil},
		"a link for what was seen": {func(_, hold string) error {
			return os.Symlink(outside, filepath.Join(hold, SeenFile))
		}, SeenFile, nil},
		"more shown than there is": {func(_, hold string) error {
			at := filepath.Join(hold, SeenFile)
			return cmp.Or(os.WriteFile(at, nil, 0o600), os.Truncate(at, maxShownBytes+1))
		}, SeenFile, nil},
		"a directory": {func(_, hold string) error { return os.Mkdir(filepath.Join(hold, "more.raw"), 0o700) }, "more.raw",
			nil},
		"a pipe": {func(_, hold string) error { return unix.Mkfifo(filepath.Join(hold, "more.raw"), 0o600) },
			"more.raw", nil},
		"what the guest sees, too": {func(layer, hold string) error {
			return cmp.Or(os.WriteFile(filepath.Join(layer, "f"), nil, 0o600),
				os.Link(filepath.Join(layer, "f"), filepath.Join(hold, "more.raw")))
		}, "more.raw", nil},
	} {
		layer := t.TempDir()
		hold := filepath.Join(layer, DiskDir)
		must(t, os.Mkdir(hold, 0o777))
		must(t, c.make(layer, hold))
		err := CheckReceivedDisks("db", layer)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if err != nil || c.left == nil {
			continue
		}
		var left []string
		entries, err := os.ReadDir(hold)
		must(t, err)
		for _, e := range entries {
			left = append(left, e.Name())
			if info, err := e.Info(); err != nil || info.Mode() != 0o600 {
				t.Errorf("%s: %s has the mode %v (%v)", what, e.Name(), info.Mode(), err)
			}
		}
		if !slices.Equal(left, c.left) {
			t.Errorf("%s: there are %q", what, left)
		}
	}
	if info, err := os.Stat(outside); err != nil || info.Mode() != 0o640 {
		t.Errorf("what is outside is %v (%v)", info, err)
	}
}
