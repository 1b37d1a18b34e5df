package need

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

// scratch is where hosts in memory have their files.
var scratch string

// RandomSites runs the tests of a package that bring up many random sites, whose hosts are in
// memory, with the real worker: fewer of them in the quick run.
func RandomSites(m *testing.M) {
	if err := flag.Set("rapid.checks", strconv.Itoa(Times(12, 100))); err != nil {
		// the real worker does each step of each
		panic(err)
	}
	scratch = inMemory()
	code := m.Run()
	_ = os.RemoveAll(scratch)
	os.Exit(code)
}

// QuickInMemory is InMemory, except in make test: there what the package is about is on a disk, as with users.
func QuickInMemory(m *testing.M) int {
	if Asked() {
		return m.Run()
	}
	return InMemory(m)
}

// InMemory runs the tests of a package that write much with their temporary directories in memory,
// where nothing waits for a disk.
func InMemory(m *testing.M) int {
	dir := inMemory()
	defer os.RemoveAll(dir) //nolint:errcheck // it goes with the machine
	if err := os.Setenv("TMPDIR", dir); err != nil {
		panic(err)
	}
	return m.Run()
}

// inMemory returns an empty directory in memory, if there is such a place.
func inMemory() string {
	below := ""
	if _, err := os.Stat("/dev/shm"); err == nil {
		below = "/dev/shm"
	}
	dir, err := os.MkdirTemp(below, "orrery-test-")
	if err == nil {
		err = os.Chmod(dir, 0o755) // as the usual one, it is no wall
	}
	if err != nil {
		panic(err)
	}
	return dir
}

// Scratch returns an empty directory, which goes with the others when RandomSites ends.
func Scratch() string {
	dir, err := os.MkdirTemp(scratch, "")
	if err != nil {
		panic(err)
	}
	return dir
}
