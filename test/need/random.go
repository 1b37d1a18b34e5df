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

// Scratch returns an empty directory, which is removed with the others when RandomSites ends.
func Scratch() string {
	dir, err := os.MkdirTemp(scratch, "")
	if err != nil {
		panic(err)
	}
	return dir
}
