package test

import "testing"

// The longest tests are in this file. go test starts the parallel tests of a package with the last
// or middle ones, depending on how their goroutines are woken.

// TestLabs runs the longer tests of the lab in parallel with all other tests, but one after
// another, since only one lab can measure on a host.
func TestLabs(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		name string
		test func(*testing.T)
	}{
		{"ProgramMissing", labProgramMissing}, {"ResumeHalfMade", labResumeHalfMade},
		{"TwoStateDirectories", labTwoStateDirectories},
		{"Equal", labEqual}, {"Default", labDefault}, {"EveryKind", labEveryKind}, {"Examples", labExamples},
		{"Machines", labMachines},
	} {
		t.Run(one.name, one.test)
	}
}
