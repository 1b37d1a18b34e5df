package test

import "testing"

// What takes longest stands here: of the parallel tests of a package, go test begins with the last
// or with those in the middle, each time as its goroutines happen to be woken.

// TestLabs runs the longer tests of the lab beside all other tests, but one after another: only one
// lab can measure on a host.
func TestLabs(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		name string
		test func(*testing.T)
	}{
		{"ProgramMissing", labProgramMissing}, {"ResumeHalfMade", labResumeHalfMade},
		{"TwoStateDirectories", labTwoStateDirectories},
		{"Equal", labEqual}, {"Default", labDefault}, {"EveryKind", labEveryKind}, {"Examples", labExamples},
		{"Machines", labMachines}, {"Disks", labDisks},
	} {
		t.Run(one.name, one.test)
	}
}
