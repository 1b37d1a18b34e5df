package need

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

// scratch is where hosts in memory have their files.
var scratch string

// RandomSites runs the tests of a package that bring up many random sites, whose hosts are in memory, with the real worker: fewer of them in the quick run.
func RandomSites(m *testing.M) {
	if err := flag.Set("rapid.checks", strconv.Itoa(Times(25, 100))); err != nil { // the real worker does each step of each
		panic(err)
	}
	below := "" // in memory, if there is such a place
	if _, err := os.Stat("/dev/shm"); err == nil {
		below = "/dev/shm"
	}
	var err error
	if scratch, err = os.MkdirTemp(below, "orrery-sites-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(scratch)
	os.Exit(code)
}

// Scratch gives an empty directory, which goes with the others when RandomSites ends.
func Scratch() string {
	dir, err := os.MkdirTemp(scratch, "")
	if err != nil {
		panic(err)
	}
	return dir
}
