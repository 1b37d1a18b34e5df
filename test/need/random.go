package need

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

// scratch is where hosts in memory store their files.
var scratch string

// RandomSites runs the tests of a package that start many random sites with the real worker, on
// hosts in memory. The quick run has fewer sites.
func RandomSites(m *testing.M) {
	if err := flag.Set("rapid.checks", strconv.Itoa(Times(12, 100))); err != nil {
		// The real worker does each step of each site.
		panic(err)
	}
	scratch = inMemory()
	code := m.Run()
	_ = os.RemoveAll(scratch)
	os.Exit(code)
}

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

// inMemory returns an empty directory in memory, or "" if there is none.
func inMemory() string {
	below := ""
	if _, err := os.Stat("/dev/shm"); err == nil {
		below = "/dev/shm"
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

// Scratch returns an empty directory, which is removed with the others when RandomSites ends.
func Scratch() string {
	dir, err := os.MkdirTemp(scratch, "")
	if err != nil {
		panic(err)
	}
	return dir
}
