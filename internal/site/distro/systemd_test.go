package distro

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orrery/internal/tree"
)

// TestDisable: the links that pull in a unit are removed from all directories. Nothing else is
// removed, neither in the node nor outside.
func TestDisable(t *testing.T) {
	node, outside := t.TempDir(), t.TempDir()
	at := func(name string) string { return filepath.Join(node, unitsDir, name) }
	for _, dir := range []string{"multi-user.target.wants", "timers.target.requires", "other", "sly.wants"} {
		must(t, os.MkdirAll(at(dir), 0o755))
	}
	gone := []string{"multi-user.target.wants/feed.service", "timers.target.requires/feed.service",
		"multi-user.target.wants/tidy.timer"}
	stay := []string{"other/feed.service", "multi-user.target.wants/web.service", "feed.service"}
	for _, name := range append(gone, stay...) {
		must(t, os.Symlink("/usr/lib/systemd/system/x", at(name)))
	}
	must(t, os.Mkdir(at("sly.wants/feed.service"), 0o755)) // unlink cannot remove a directory
	must(t, os.Symlink("/usr/lib/systemd/system/x", filepath.Join(outside, "feed.service")))
	must(t, os.Symlink(outside, at("out.wants")))
	root, err := tree.Open(node)
	must(t, err)
	defer root.Close()
	for _, unit := range []string{"feed", "tidy.timer", "never.service"} {
		must(t, systemd.Disable(root, unit))
	}
	for _, name := range gone {
		if _, err := os.Lstat(at(name)); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
	for _, path := range []string{at(stay[0]), at(stay[1]), at(stay[2]), at("sly.wants/feed.service"),
		filepath.Join(outside, "feed.service")} {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
	bare, err := tree.Open(t.TempDir())
	must(t, err)
	defer bare.Close()
	must(t, systemd.Disable(bare, "feed"))
}

// TestNoGettyInContainers: units that systemd-getty-generator(8) pulls in start in virtual
// machines. They do not start in containers, where nobody uses terminals and some versions of
// systemd cannot open them.
func TestNoGettyInContainers(t *testing.T) {
	for _, unit := range []string{"console-getty.service", "container-getty@.service", "serial-getty@.service",
		"getty@.service"} {
		path := "/etc/systemd/system/" + unit + ".d/orrery.conf"
		if !slices.ContainsFunc(systemd.Fittings, func(f File) bool {
			return f.Path == path && strings.Contains(f.Text, "ConditionVirtualization=!container")
		}) {
			t.Errorf("%s would be started in a container", unit)
		}
	}
}
