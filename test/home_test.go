package test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/test/need"
)

// homes contains the state directories of tests that must not meet other sites.
var homes = filepath.Join(need.State(), "homes")

// home returns the directories of such a test.
func home(name string) host.Dirs {
	return host.Dirs{State: filepath.Join(homes, name), Run: need.Run() + "-" + name}
}

// newHome makes such directories, with the layers of all tests. A command that starts all sites of
// a state directory finds only this test's. They are removed when the test ends.
func newHome(t *testing.T, name string) host.Dirs {
	t.Helper()
	home := newBareHome(t, name)
	need.Apart(t, home.State)
	return home
}

// newBareHome makes such directories without layers, as another machine has them.
func newBareHome(t *testing.T, name string) host.Dirs {
	t.Helper()
	home := home(name)
	for _, dir := range []string{homes, home.State} {
		must(t, errors.Join(os.MkdirAll(dir, 0o711), os.Chmod(dir, 0o711))) // whatever root's umask is
	}
	t.Cleanup(func() {
		if err := dropHome(home); err != nil {
			t.Error(err)
		}
	})
	return home
}

// dropHome destroys the sites in such directories and removes them, even if a test was killed.
func dropHome(home host.Dirs) error {
	if err := forgetAll(home); err != nil {
		return err
	}
	_ = unix.Unmount(home.Run, unix.MNT_DETACH)
	_ = unix.Unmount(home.State, unix.MNT_DETACH) // if it is a separate disk
	for _, path := range []string{home.State + ".img", home.Run, home.State} {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}
