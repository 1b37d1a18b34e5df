package kvm

import (
	"strings"
	"testing"

	"orrery/internal/image/kernel"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestDrives: a card without a driver in the guest's kernel is reported before the machine starts.
func TestDrives(t *testing.T) {
	n, none := &spec.Node{Name: "db", NICs: []spec.NIC{{Name: "eth0"}}}, &kernel.Boot{}
	must(t, checkNICDriver(n, none))
	n.VM.Model = site.RTL8139
	if err := checkNICDriver(n, none); problem.ExitCode(err) != int(problem.Unable) ||
		!strings.Contains(err.Error(), "8139cp") {
		t.Error(err)
	}
	must(t, checkNICDriver(n, &kernel.Boot{Modules: []string{"8139cp"}}))
	n.NICs = nil
	must(t, checkNICDriver(n, none))
}
