package need

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// QuickInMemory is like InMemory, except in make test, where the package's data is on a disk, as it
// is for users.
func QuickInMemory(m *testing.M) int {
	if Asked() {
		return m.Run()
	}
	return InMemory(m)
}

// InMemory runs the tests of a package that write much, with their temporary directories in memory,
// so that they need not wait for a disk.
func InMemory(m *testing.M) int {
	dir := inMemory()
	defer os.RemoveAll(dir) //nolint:errcheck // it goes with the machine
	if err := os.Setenv("TMPDIR", dir); err != nil {
		panic(err)
	}
	return m.Run()
}

// MemoryDir returns a directory in memory for a test, which removes it. A run directory of Orrery
// belongs into it and not at its place, because the lock of the mount is beside a run directory.
func MemoryDir(t *testing.T) string {
	t.Helper()
	dir := inMemory()
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// inMemory returns an empty directory in memory or, if there is none for this user, on a disk.
func inMemory() string {
	below := "/dev/shm"
	if unix.Access(below, unix.W_OK|unix.X_OK) != nil {
		below = ""
	}
	dir, err := os.MkdirTemp(below, "orrery-test-")
	if err == nil {
		err = os.Chmod(dir, 0o755) // like the usual one, other users may enter it
	}
	if err != nil {
		panic(err)
	}
	return dir
}
